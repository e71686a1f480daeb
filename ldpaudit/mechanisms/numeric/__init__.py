"""Mechanisms designed for a prior on numeric labels, and the audit's view of all such.

In: a prior, a loss and ε. Out: the mechanism with the least expected loss.
"""
