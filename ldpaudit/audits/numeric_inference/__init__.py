"""Attacks on labels that are numbers.

In: the release and the claim. Out: each attack's mean errors, with intervals.
"""
