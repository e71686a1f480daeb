"""The privacy loss of single people: ν(x), J(τ) and E[ν].

In: label counts among neighbours. Out: estimates, and certified bounds on their distribution.
"""
