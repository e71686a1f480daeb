"""Estimators: bounds and estimates that know nothing about files or reports."""

# In: arrays of numbers. Out: frozen values with their level and side.
