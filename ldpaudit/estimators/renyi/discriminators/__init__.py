"""Classifiers that learn to tell two samples apart.

In: two tables of features. Out: scores, for the divergence bounds.
"""
