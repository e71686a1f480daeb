"""Sparse features, from svmlight files or SciPy matrices, as a few dense columns.

In: rows of (index, value). Out: a feature table of numbers, projected without a look at labels.
"""
