"""Powers e^ε whose rounding favours privacy."""

import math
from typing import Final

from ldpaudit.doors import InputError
from ldpaudit.mechanisms.exact_sampling import LARGEST_EPSILON

# e^ε is lowered by this share, more than all later rounding can add.
_TOWARDS_PRIVACY: Final = 2.0**-47


def lowered_growth(epsilon: float) -> float:
    """Return e^ε − 1 a little too low, so that rounded probabilities never exceed ε."""
    if not 1e-13 <= epsilon <= LARGEST_EPSILON:
        raise InputError(
            f"The 'epsilon' parameter of this mechanism must lie between 1e-13 and "
            f"{LARGEST_EPSILON:g}. Got {epsilon:g} instead."
        )
    return math.expm1(epsilon) - math.exp(epsilon) * _TOWARDS_PRIVACY


def raised_growth(epsilon: float) -> float:
    """Return e^ε − 1 a little too high, for bounds that must hold at ε (nats)."""
    return math.expm1(epsilon) * (1 + 2.0**-50)
