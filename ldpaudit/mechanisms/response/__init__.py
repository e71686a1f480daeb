"""Mechanisms that keep a label or draw another: randomized response and its relatives.

In: labels as codes. Out: released codes, and for some of them features.
"""
