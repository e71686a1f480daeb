"""One point of a sweep: simulate a release, audit it, learn from it, test.

In: the data and a point of the grid. Out: the numbers that the point's file holds.
"""
