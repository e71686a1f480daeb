"""Columns of a release that should not have left the house.

In: the release, with or without true labels. Out: counts of columns, and what the best of them, a
row near by or the order of the rows tells. No audit to choose: it is part of every one.
"""
