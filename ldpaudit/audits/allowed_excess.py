"""How much an audit may miss before "no violation found" says too little.

In nats of ε, or as a share of the claimed ε; the larger of the two holds where both are stated.

The default is 0.5 nats, or half of the claim where that is more. Below a claim of 1 an absolute
limit is the right one: ε bounds how far a released label can move anybody's odds, and an excess of
0.5 moves them by a factor of 1.65 at most, whatever was claimed. Above it the evidence of an excess
is rare by the mechanism's own design (at ε = 8 one label in 3,000 is changed), so that an absolute
limit would call every audit of such a claim inconclusive; there it is asked whether the claim is
right to half of itself.
"""

from dataclasses import dataclass

_EXAMPLES = 'nats above 0 such as 0.5, or a share of the claimed ε such as "50%"'


@dataclass(frozen=True)
class AllowedExcess:
    """The excess of ε over the claim that an audit may miss.

    Attributes
    ----------
    nats : float
        In nats of ε.
    share : float
        As a share of the claimed ε; 0.5 stands for 50 %.
    """

    nats: float = 0.5
    share: float = 0.5

    def at(self, epsilon: float) -> float:
        """Return the limit in nats for a claimed ε."""
        return max(self.nats, self.share * epsilon)

    @classmethod
    def parse(cls, value: object) -> "AllowedExcess":
        """Return the limit that a policy states: a number of nats, or a percentage of the claim.

        Raises
        ------
        ValueError
            If it is neither, or not above 0.
        """
        if isinstance(value, cls):
            return value
        try:
            if isinstance(value, str) and value.strip().endswith("%"):
                found = cls(0.0, float(value.strip()[:-1]) / 100)
            else:
                found = cls(float(str(value)), 0.0)
        except ValueError:
            found = cls(0.0, 0.0)
        if isinstance(value, bool) or not 0 < found.nats + found.share < float("inf"):
            raise ValueError(f"max_undetected_excess must be {_EXAMPLES}")
        return found


DEFAULT_EXCESS = AllowedExcess()
