"""Columns that should not leave the house, found while the rows are released.

In: batches of features with their true labels. Out: a refusal, or warnings that name columns.
"""
