"""The papers' tables and figures, published beside measured."""
