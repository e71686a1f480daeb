"""How much an audit may miss before "no violation found" says too little."""

# In nats of ε, or as a share of the claimed ε; the larger of the two holds where both are stated.
#
# The default is 0.5 nats, or half of the claim where that is more. Below a claim of 1 an absolute
# limit is the right one: ε bounds how far a released label can move anybody's odds, and an excess
# of 0.5 moves them by a factor of 1.65 at most, whatever was claimed. Above it the evidence of an
# excess is rare by the mechanism's own design (at ε = 8 one label in 3,000 is changed), so that an
# absolute limit would call every audit of such a claim inconclusive; there it is asked whether the
# claim is right to half of itself.

import math
from dataclasses import dataclass

_EXAMPLES = (
    'nats above 0 such as 0.5, a share of the claimed ε such as "50%", both such as [0.5, "50%"] '
    '(the larger holds), or "any"'
)
_ANY = "any"


@dataclass(frozen=True)
class AllowedExcess:
    """The excess of ε over the claim that an audit may miss."""

    nats: float = 0.5
    """In nats of ε."""
    share: float = 0.5
    """As a share of the claimed ε; 0.5 stands for 50 %."""

    def at(self, epsilon: float) -> float:
        """Return the limit in nats for a claimed ε."""
        return max(self.nats, self.share * epsilon)

    @classmethod
    def parse(cls, value: object) -> "AllowedExcess":
        """Return the limit that a policy states: nats, a percentage of the claim, both, or "any".

        Raise ValueError if it is neither, or not above 0.
        """
        if isinstance(value, cls):
            return value
        if value == _ANY:
            return cls(math.inf, 0.0)
        parts = value if isinstance(value, list | tuple) and len(value) == 2 else [value]
        limits = [_limit(part) for part in parts]
        if not all(0 < nats + share < math.inf for nats, share in limits):
            raise ValueError(f"must be {_EXAMPLES}")
        return cls(max(nats for nats, _ in limits), max(share for _, share in limits))

    def or_default(self) -> "AllowedExcess":
        """Return it, or the default where any excess may be missed: what to reckon rows with."""
        return self if math.isfinite(self.nats) else DEFAULT_EXCESS


def _limit(value: object) -> tuple[float, float]:
    """Return one limit in nats or as a share, the other 0; both 0 where it is neither."""
    try:
        if isinstance(value, str) and value.strip().endswith("%"):
            return 0.0, float(value.strip()[:-1]) / 100
        return (0.0, 0.0) if isinstance(value, bool | str) else (float(value), 0.0)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0, 0.0


DEFAULT_EXCESS = AllowedExcess()
