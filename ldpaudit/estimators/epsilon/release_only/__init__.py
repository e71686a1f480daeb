"""The lower bound on ε from a release alone, without true labels.

In: features and released labels. Out: groups learnt on some rows, a bound from the others.
"""
