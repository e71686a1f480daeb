"""``compose``: the privacy of several releases of the same labels.

In: released files or specifications. Out: an analysis, exact or an upper bound.
"""
