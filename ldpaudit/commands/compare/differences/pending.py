"""A difference that is to be bounded once its share of the error is known."""

from collections.abc import Callable
from dataclasses import dataclass

from ldpaudit.commands.compare.differences.paired import Interval
from ldpaudit.commands.compare.side import Side
from ldpaudit.result import Unit

Bound = Callable[[float], Interval | None]
"""From an error probability to the interval; None where none can be told."""


@dataclass(frozen=True)
class PendingDifference:
    """A number of ``b`` less the same number of ``a``.

    Attributes
    ----------
    a, b : Side
    id : str
        The number's id in both results.
    headline : bool
        Whether it gets a share of the headlines' half of the error probability.
    interval : function
    method : str
    paired : bool
    unit : str
    """

    a: Side
    b: Side
    id: str
    headline: bool
    interval: Bound
    method: str
    paired: bool = True
    unit: Unit = "proportion"
