"""Synthetic features: how real they look, and whether they repeat true rows.

In: original, synthetic and held-out rows. Out: tests, bounds and shares of copies.
"""
