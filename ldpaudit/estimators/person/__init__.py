"""Several answers of a person, over columns and releases: lower bounds of ε, and shared draws.

In: codes of true and released labels, and the claimed channels, which only choose what is counted.
Out: bounds at their levels, exact tests of how noise goes together, and guesses from all releases.
"""
