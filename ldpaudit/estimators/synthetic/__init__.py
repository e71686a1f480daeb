"""What synthetic rows give away about the rows that they were made from.

In: original, synthetic and held-out rows. Out: tests and bounds of memorisation.
"""
