"""Attacks on labels that are numbers: posteriors, guesses and their scores.

In: features and released numbers. Out: guesses, and one bounded score per row.
"""
