"""Several private columns together: lower bounds of the vector's ε, and shared draws.

In: codes of true and released vectors, and the claimed channels, which only choose what is counted.
Out: bounds at their levels, and p-values.
"""
