"""Nearest neighbours: the metric, the search, and label counts around each row.

In: feature columns. Out: counts of labels within a radius, or the closest records.
"""
