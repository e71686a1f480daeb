"""Limits that a policy states in relation to the claim."""

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

CLAIM: Final = "claim"
"""The word for the claimed ε, and for what a claim of that ε allows."""

Share = float | Literal["claim"]
"""A share, or the largest one that the claimed ε allows."""


@dataclass(frozen=True)
class Loss:
    """A loss in nats: so much, or so much more than the claimed ε.

    Attributes
    ----------
    nats : float
    above_claim : bool
        Whether the claimed ε is added.
    """

    nats: float
    above_claim: bool = False

    def at(self, epsilon: float | None) -> float | None:
        """Return it in nats; None where it needs a finite claim and there is none."""
        if not self.above_claim:
            return self.nats
        return None if epsilon is None or math.isinf(epsilon) else epsilon + self.nats

    @classmethod
    def parse(cls, value: object) -> "Loss":
        """Return what a policy states: a number of nats, or a text such as "claim + 5".

        Raises
        ------
        ValueError
            If it is neither, or below 0.
        """
        if isinstance(value, cls):
            return value
        words = value.replace(" ", "") if isinstance(value, str) else ""
        above = words.startswith(CLAIM)
        stated: Any = (words.removeprefix(CLAIM).removeprefix("+") or 0) if above else value
        if isinstance(stated, bool) or (isinstance(stated, str) and not above):
            stated = None
        try:
            found = cls(float(stated), above)
        except (TypeError, ValueError):
            found = cls(math.nan)
        if not 0 <= found.nats < math.inf:
            raise ValueError('must be nats from 0 up, such as 6.0, or a text such as "claim + 5"')
        return found


def share_of(value: object) -> Share:
    """Return a largest share that a policy states: a number from 0 to 1, or "claim".

    Raises
    ------
    ValueError
        If it is neither.
    """
    if value == CLAIM:
        return "claim"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= float(str(value)) <= 1:
        raise ValueError(
            'must be a share from 0 to 1, such as 0.05, or "claim" (the most that the claimed ε '
            "allows)"
        )
    return float(str(value))
