"""What is hidden of small counts, and what is shown in their place: the one rule for every number.

A count of 1 to 9 people is never shown, nor a number from which it can be computed. Where a number
rests on such a count, its own counts are hidden and it is rounded outward, to steps that do not
depend on what is hidden: a lower bound only becomes lower, an upper one higher, and both hold as
before. :mod:`ldpaudit.audits.small_classes` says what becomes of true classes with few people.
"""

import math
from collections.abc import Callable
from typing import Any, Final

SMALLEST_CELL: Final = 10
"""A count of people above 0 and below this is never shown."""
LEFT_OUT: Final = " Left out: "
"""Where a verdict's sentence says what it is not about."""
TRUTH_UNUSED: Final = f"{LEFT_OUT}the true labels"
"""What it is not about where they were given, and too few people have each to use them."""
NATS: Final = 0.1
"""The step of hidden numbers in nats."""
EXCESSES: Final = 0.5
"""The step of what would have been found, in nats: simulations follow each single count."""
P_VALUES: Final = (1.0, 0.01, 1e-4, 1e-6, 1e-9, 1e-12)
"""What p-values of hidden counts are rounded up to."""
_FEW_DIGITS: Final = 0.01
"""The step of a share that is the average of two halves, of which one has a small count."""
_LAST_DIGITS: Final = 1e-9
"""What two computations of one number may differ by: 1 and the ε of a channel made for ε = 1."""

Rounding = Callable[[float], int]


def is_small(count: float | None) -> bool:
    """Return whether a count is one to hide: above 0 and below ten."""
    return count is not None and 0 < count < SMALLEST_CELL


def few(count: int) -> str:
    """Return a count for a message: a small one as "fewer than 10"."""
    return f"fewer than {SMALLEST_CELL}" if is_small(count) else f"{count:,}"


def share_step(n: float | None) -> float:
    """Return the step of hidden shares of about ``n`` people, 1 where that is not known.

    It depends on the number of digits of ``n`` alone, and is so wide that bounds of 1 to 9 people,
    and of all but 1 to 9, all round to the same.
    """
    if n is None or n < 100:
        return 1.0
    return 0.5 if n < 1000 else 10.0 ** (2 - math.floor(math.log10(n)))


def p_value_up(p_value: float) -> float:
    """Return the next larger of a few p-values."""
    return min((step for step in P_VALUES if step >= p_value), default=1.0)


def outward(value: float, step: float, rounding: Rounding) -> float:
    """Return a number as a multiple of the step."""
    if math.isinf(value):
        return value
    return round(rounding(round(value / step, 9)) * step, 12)


def just_above(limit: float, value: float) -> float:
    """Return a number above ``limit`` and at most ``value``, which tells little of ``value``."""
    steps = (limit + 10.0**-digits for digits in range(2, 9))
    return next((step for step in steps if step <= value), math.nextafter(limit, math.inf))


def lower_bound(value: float, step: float, limit: float | None) -> float:
    """Return a lower bound rounded down, but not below a limit that it lies above."""
    rounded = outward(value, step, math.floor)
    if limit is None or value <= limit or is_clearly_above(rounded, limit):
        return rounded
    return just_above(limit, value)


def is_clearly_above(value: float, limit: float) -> bool:
    """Return whether a value lies above a limit by more than the last digits of either."""
    return value > limit + _LAST_DIGITS


def excess_up(excess: float, *, small: bool) -> float:
    """Return what an audit would have found, rounded up where ``small`` counts are behind it."""
    return outward(excess, EXCESSES, math.ceil) if small else excess


def hidden(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a number that rests on a small count, without what tells the count."""
    side, kind = fields.get("side"), fields.get("unit", "1")
    shown = fields | {"n": None, "count": None, "suppressed": True}
    if (kind == "1" and side == "upper") or "p-value" in str(fields.get("title")):
        p_value = p_value_up(fields["value"])
        return shown | {"value": p_value, "high": p_value if side == "upper" else None}
    step = _step(kind, fields)
    for key, rounding in (("low", math.floor), ("high", math.ceil)):
        if fields.get(key) is not None:
            shown[key] = outward(fields[key], step, rounding)
    if kind == "proportion":
        shown |= {key: max(min(shown[key], 1.0), -1.0) for key in ("low", "high") if shown.get(key)}
    return shown | {"value": _value(shown, step)}


def in_few_digits(value: float, unit: str, rounding: Rounding = round) -> float:
    """Return an average over parts in so few digits that no part's counts follow."""
    return outward(value, 10 * _FEW_DIGITS if unit == "log-odds" else _FEW_DIGITS, rounding)


def with_ends_in_few_digits(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with ends that tell no part's counts; the value may be a count of all."""
    ends = {key: fields[key] for key in ("low", "high") if fields.get(key) is not None}
    rounding = {"low": math.floor, "high": math.ceil}
    unit = fields.get("unit", "1")
    return fields | {key: in_few_digits(end, unit, rounding[key]) for key, end in ends.items()}


def _step(unit: str, fields: dict[str, Any]) -> float:
    if unit == "proportion":
        return share_step(fields.get("n"))
    if unit == "nats":
        return NATS
    if unit == "rows":
        return SMALLEST_CELL
    largest = max(abs(fields.get(key) or 0.0) for key in ("value", "low", "high"))
    return 10.0 ** math.floor(math.log10(largest)) if 0 < largest < math.inf else 1.0


def _value(shown: dict[str, Any], step: float) -> float:
    """Return the number itself, within its ends; a one-sided bound is its own value."""
    low, high = shown.get("low"), shown.get("high")
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    one_sided = {"lower": low, "upper": high}.get(shown.get("side") or "")
    value = outward(shown["value"], step, round) if one_sided is None else one_sided
    return float(min(max(value, low), high))
