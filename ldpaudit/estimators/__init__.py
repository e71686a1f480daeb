"""Estimators: numbers in, bounds and estimates out; nothing here knows of files or reports."""
