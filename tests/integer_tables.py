"""The exact ε of a table of integer weights."""

import math
from fractions import Fraction
from typing import Any


def integer_epsilon(table: Any) -> float:
    """Return the log of the largest ratio of two weights of one outcome; ∞ where one is 0."""
    pairs = [(int(column.max()), int(column.min())) for column in table.weights.T if column.any()]
    if any(low == 0 for _, low in pairs):
        return math.inf
    return math.log(max(Fraction(high, low) for high, low in pairs))
