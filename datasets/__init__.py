"""Readers of released files, and the embedded sample."""
