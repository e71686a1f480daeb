"""Differences of attacks on labels that are numbers, paired on the same people.

The strongest attack of each measure is compared where both releases declare the same range of
labels, which is the scale of errors and tolerances. Each mechanism groups labels in its own way, so
scores of groups are not paired.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.commands.compare.differences.outside import NUMBERS
from ldpaudit.commands.compare.differences.pairing import mirrored, number_folds
from ldpaudit.commands.compare.differences.pending import PendingDifference
from ldpaudit.commands.compare.side import Side, number_scores
from ldpaudit.estimators.intervals.paired import Folds, Interval, best_interval
from ldpaudit.result import Unit

_SQUARES: Final = ("mse", "mse_gain")
_SHARES: Final = ("within_1", "within_5", "within_10", "exact")
_SMALL_IS_STRONG: Final = "mse"
_METHOD: Final = (
    "the strongest attack on b less the strongest on a, on the same held-out people; betting "
    "bounds on each of two folds, corrected for choosing the attack"
)


def numeric_differences(a: Side, b: Side) -> Iterator[PendingDifference]:
    """Yield the paired differences of the strongest attack, the squared error as a headline."""
    width = _common_range(a, b)
    if width is None or not b.paired or a.guesses is None or b.guesses is None:
        return
    for measure in (*_SQUARES, *_SHARES):
        ours, theirs = (number_scores(side.result, measure) for side in (a, b))
        if not ours or not theirs:
            continue
        pair = _Pairs(a.guesses, b.guesses, measure, _reach(measure, width))
        unit: Unit = "squared label units" if measure in _SQUARES else "proportion"
        identifier = f"numeric.best.{measure}"
        bound = partial(pair.best, ours, theirs)
        yield PendingDifference(a, b, identifier, identifier == NUMBERS, bound, _METHOD, unit=unit)


def _common_range(a: Side, b: Side) -> float | None:
    ours, theirs = (side.result.estimate("numeric.range") for side in (a, b))
    if ours is None or theirs is None or ours.value != theirs.value:
        return None
    return ours.value


def _reach(measure: str, width: float) -> float:
    """Return the largest difference of two values: gains lie within the squared range's ±."""
    if measure in _SHARES:
        return 1.0
    return (2 if measure == "mse_gain" else 1) * width**2


@dataclass(frozen=True)
class _Pairs:
    """The row-wise differences of any two attacks by one measure."""

    a: HeldOutGuesses
    b: HeldOutGuesses
    measure: str
    reach: float

    def best(self, ours: dict[str, float], theirs: dict[str, float], alpha: float) -> Interval:
        """Return the difference of the strongest, at level 1 − alpha."""
        if self.measure != _SMALL_IS_STRONG:
            return best_interval(self._folds, ours, theirs, alpha)
        # The strongest attack has the smallest error: of the negative errors it is the largest.
        negative = best_interval(
            lambda i, j: mirrored(self._folds(i, j)),
            {name: -value for name, value in ours.items()},
            {name: -value for name, value in theirs.items()},
            alpha,
        )
        ends = (-negative.value, -negative.high, -negative.low)
        return Interval(*ends, negative.level, negative.n)

    def _folds(self, name_a: str, name_b: str) -> Folds:
        key_a, key_b = (f"{name}.{self.measure}" for name in (name_a, name_b))
        return number_folds(self.a, key_a, self.b, key_b, self.reach)
