"""Releases of bags: one sum or proportion for several people.

In: bags and the claim. Out: bounds on ε, and attacks on each member's label.
"""
