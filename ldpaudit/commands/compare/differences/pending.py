"""A difference that waits for its share of the error probability."""

from collections.abc import Callable
from dataclasses import dataclass

from ldpaudit.commands.compare.side import Side
from ldpaudit.estimators.intervals.paired import Interval
from ldpaudit.result import Unit

Bound = Callable[[float], Interval | None]
"""From an error probability to the interval; None where there is none."""


@dataclass(frozen=True)
class PendingDifference:
    """A number of ``b`` less the same number of ``a``, by its id in both results.

    A ``headline`` gets a share of the headlines' half of the error probability.
    """

    a: Side
    b: Side
    id: str
    headline: bool
    interval: Bound
    method: str
    paired: bool = True
    unit: Unit = "proportion"
