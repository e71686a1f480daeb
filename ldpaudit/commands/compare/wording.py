"""Numbers of a comparison in words: shares, percent points, intervals at one level for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Final

from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.result.comparison import Difference

_EXACT: Final = 12
"""Decimals beyond which an end is floating-point noise."""
_LEAST_LEVEL: Final = 0.5
"""Below this joint level nothing is said of it."""


@dataclass(frozen=True)
class Intervals:
    """How sentences give their ``count`` intervals.

    Attributes
    ----------
    together : float
        The level at which all hold together: those of the corrected family share one error
        probability, the others add theirs.
    confidence : float
        Of the corrected family.
    """

    together: float
    confidence: float
    count: int

    @classmethod
    def of(cls, named: Sequence[Difference], confidence: float) -> "Intervals":
        """Return how to give the intervals of the named differences."""
        alone = sum(1 - d.level for d in named if not d.simultaneous and d.level is not None)
        family = 1 - confidence if any(d.simultaneous for d in named) else 0.0
        return cls(1 - alone - family, confidence, len(named))

    def points(self, difference: Difference) -> str:
        """Return the interval of a share, in percent points: ends rounded outward."""
        low, high = _outward(difference.low, ROUND_FLOOR), _outward(difference.high, ROUND_CEILING)
        return f"({self._level(difference)}: {low} to {high})"

    def plain(self, difference: Difference) -> str:
        """Return the interval, ends rounded outward."""
        low, high = (round(end, _EXACT) for end in (difference.low, difference.high))
        return f"({self._level(difference)}: {number(low, 'down')} to {number(high, 'up')})"

    def remark(self) -> str:
        """Return at which level the intervals hold together, where several do; or nothing."""
        if self.count < 2 or self.together < _LEAST_LEVEL:
            return ""
        return f"The intervals hold together at {_percent(self.together)}."

    def _level(self, difference: Difference) -> str:
        return _percent(self.confidence if difference.simultaneous else difference.level or 0.0)


def _percent(level: float) -> str:
    # Sums of error probabilities are off in their last digits, which would be rounded up.
    return percent(round(level, 9))


def _outward(end: float, rounding: str) -> str:
    """Return an end of an interval in points, with as many digits as keep its sign."""
    exact = Decimal(repr(round(end, _EXACT))) * 100
    for digits in range(1, _EXACT):
        text = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
        if text or not exact:
            break
    return f"{text:f}".replace("-", "−")


def percent_of(share: float) -> str:
    """Return a share such as ``88.3 %``."""
    return f"{points_of(share)} %"


def points_of(share: float) -> str:
    """Return a share in hundredths, such as ``88.3``."""
    return _rounded(100 * share, 1)


def signed_points(difference: float) -> str:
    """Return a difference of shares in percent points, with as many digits as show its sign."""
    for digits in (1, 2, 3, 4):
        text = _rounded(100 * difference, digits)
        if text.strip("−0."):
            return text if difference < 0 else f"+{text}"
    return "0"


def _rounded(value: float, digits: int) -> str:
    step = Decimal(1).scaleb(-digits)
    text = f"{Decimal(repr(value)).quantize(step, rounding=ROUND_HALF_EVEN):f}"
    return text.replace("-", "−")
