"""Columns, and combinations of columns, with too many values for an indicator each.

In: features and labels, true or released. Out: tables with numbers in place of such values.
"""
