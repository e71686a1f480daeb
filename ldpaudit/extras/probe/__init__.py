"""Randomizers and trained models: ``mechanism audit``, ``audit_model``, ``run --predictions``."""
