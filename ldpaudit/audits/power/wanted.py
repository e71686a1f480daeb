"""What every statement of power shares: its words, and the search for the rows that it needs."""

import math
from collections.abc import Callable
from typing import Any

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.observational.power import EXCESS, EXCESS_TITLE, WANTED_POWER
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.result import Estimate, Note

ROWS_NEEDED = "power.rows_needed"
_ROWS_TITLE = "Further rows for the power that the policy asks for"
_MOST_ROWS = 1e12


def limit_of(context: AuditContext, channel: Channel) -> float:
    """Return the claimed ε; the channel to the bins of a numeric mechanism may have a smaller."""
    return channel.epsilon if context.claim.epsilon is None else context.claim.epsilon


def excess_estimate(
    excess: Callable[[float], float], alpha: float, **details: Any
) -> tuple[Estimate, tuple[Note, ...]]:
    """Return the smallest excess found at a level as a number with assumptions, and a warning."""
    value = excess(alpha)
    return Estimate.estimated(EXCESS, EXCESS_TITLE, value, unit="nats", **details), no_power(value)


def no_power(excess: float) -> tuple[Note, ...]:
    """Return a warning where no excess would be found."""
    text = (
        "With these rows and features no excess over the claim, however large, would be found "
        "reliably."
    )
    return (Note.warning("power", text),) if math.isinf(excess) else ()


def rows_estimate(rows: float, target: float, *, exact: bool, **details: Any) -> Estimate:
    """Return how many further rows find an excess ``target``, in nats."""
    make = Estimate.exact if exact else Estimate.estimated
    words = (
        f"further rows, in the same classes' proportions, until an excess of {target:g} "
        f"nats is found with probability {WANTED_POWER:.0%} (to 2 %)"
    )
    return make(ROWS_NEEDED, _ROWS_TITLE, rows, unit="rows", method=words, **details)


def further_rows(enough: Callable[[float], bool], rows: int) -> float:
    """Return how many more rows suffice, 0 where these do and ∞ where 10^12 do not.

    ``enough`` says whether a multiple of the rows is enough.
    """
    if enough(1.0):
        return 0.0
    low, high = 1.0, 2.0
    while not enough(high):
        low, high = high, 2 * high
        if high * rows > _MOST_ROWS:
            return math.inf
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(math.ceil(rows * (high - 1)))
