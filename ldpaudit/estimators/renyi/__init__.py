"""Rényi divergences between two samples, with certified bounds.

In: scores of held-out rows of either sample. Out: bounds and estimates over the order α.
"""
