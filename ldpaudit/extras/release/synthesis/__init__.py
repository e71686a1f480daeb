"""Conditional feature generators for double randomized response: ``ldpaudit.synthesis``."""
