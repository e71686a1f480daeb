"""``describe`` and ``channel``: everything that is exactly known of one mechanism.

In: a mechanism's parameters or a matrix. Out: ε, δ(ε), the Rényi curve, bias, variance and loss.
"""
