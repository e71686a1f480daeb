"""Differences between two releases' numbers, each with an interval.

In: the audits of both releases. Out: differences, with one error probability shared by all.
"""
