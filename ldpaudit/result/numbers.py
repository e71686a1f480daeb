"""Rounding of printed numbers that never contradicts a verdict."""

# A lower bound is rounded down and an upper end up, so a printed bound never claims more than the
# computed one. Where a number is judged against a limit, both are printed with as many digits as it
# takes for the printed pair to stand in the order of the computed pair.

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Final, Literal

Direction = Literal["down", "nearest", "up"]

DIGITS: Final = 3
"""Decimals of a number from 0.1 up; a smaller one gets one more, one from 100 up fewer."""
_MOST_DIGITS: Final = 40
_CONTEXT: Final = Context(prec=400)
_ROUNDING: Final = {"down": ROUND_FLOOR, "nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING}
_PLAIN: Final = (Decimal("1e-4"), Decimal("1e6"))
"""Outside of this range numbers are written as 1.23e-5."""
_SMALL: Final = Decimal("0.001")
_FEWER: Final = ((Decimal("1e3"), 3), (Decimal("1e2"), 2))
"""From each of these on, so many decimals fewer: 2,704 and 282.1."""
_NOISE: Final = 1e-14
"""Below this what is computed exactly is 0 but for the rounding of floating-point numbers."""
_SMALLEST_P: Final = 1e-12
"""Audits compute p-values down to this one."""
_PERCENT: Final = "\u00a0%"
_LARGEST_COUNT: Final = 1e15


def rounded(value: float, direction: Direction = "nearest", digits: int = DIGITS) -> Decimal:
    """Return ``value`` rounded towards ``direction``; infinities stay.

    Parameters
    ----------
    value : float
        Not NaN; taken as its shortest decimal form, so that 0.963 rounds down to 0.963.
    direction : {"down", "nearest", "up"}
        Towards minus infinity, to the nearest (ties to even), towards plus infinity.
    digits : int
        Decimals where 0.1 ≤ |value| < 100, one more from 0.001 up, two fewer from 100 up, three
        fewer from 1,000 to 10⁶; elsewhere one less significant digits. Always at least one
        significant digit. Whole numbers below 10¹⁵ stay as they are.
    """
    exact = Decimal(repr(float(value)))
    if not exact.is_finite() or _is_count(value):
        return exact
    if _SMALL <= abs(exact) < _PLAIN[1]:
        exponent = -digits - (abs(exact) < Decimal("0.1"))
        exponent += next((fewer for least, fewer in _FEWER if abs(exact) >= least), 0)
        exponent = min(exponent, exact.adjusted())
    else:
        exponent = exact.adjusted() + 1 - max(digits - 1, 1)
    if exponent <= _exponent(exact):
        return exact
    step = Decimal(1).scaleb(exponent, context=_CONTEXT)
    return exact.quantize(step, rounding=_ROUNDING[direction], context=_CONTEXT)


def _exponent(decimal: Decimal) -> int:
    return int(decimal.as_tuple().exponent)


def number(value: float, direction: Direction = "nearest", digits: int = DIGITS) -> str:
    """Return ``value`` for people: rounded towards ``direction``, ∞ for infinity.

    ``direction`` is ``"down"``, ``"nearest"`` or ``"up"``: a lower bound is rounded down, an upper
    one up. ``digits`` are its decimals between 0.1 and 100; outside, more or fewer. Whole numbers
    stay whole.
    """
    # A number that the digits hold exactly is written short (``0.05``, ``1``, ``48,842``), a
    # rounded one with all its digits (``0.963``, ``1.000``).
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if _is_count(value):
        return f"{int(value):,}".replace("-", "−")
    decimal = rounded(value, direction, digits)
    if decimal == Decimal(repr(float(value))):
        decimal = decimal.normalize(_CONTEXT)
    return _written(decimal)


def exactly(value: float, digits: int = 2 * DIGITS) -> str:
    """Return a number without its error of floating-point arithmetic, the only one that it has."""
    return "0" if abs(value) < _NOISE else number(float(f"{value:.12g}"), digits=digits)


def _is_count(value: float) -> bool:
    return float(value).is_integer() and abs(value) < _LARGEST_COUNT


def _written(decimal: Decimal) -> str:
    if _PLAIN[0] <= abs(decimal) < _PLAIN[1]:
        return f"{decimal:,f}".replace("-", "−")
    text = f"{decimal:e}"
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


def digits_apart(
    printed: Iterable[tuple[float, Direction]],
    references: Iterable[float],
    digits: int = DIGITS,
) -> int:
    """Return the fewest digits at which rounding keeps every number's order to every reference.

    Parameters
    ----------
    printed : pairs of a number and its rounding direction
    references : floats
        Limits and claims, printed to the nearest.
    digits : int
        The least to return.

    Returns
    -------
    int
        At least ``digits``. A printed number is above, equal to or below the printed reference
        exactly where the computed ones are.
    """
    limits = list(references)
    pairs = [(v, d, r) for v, d in printed for r in limits]
    for enough in range(digits, _MOST_DIGITS):
        if all(_same_order(v, d, r, enough) for v, d, r in pairs):
            return enough
    return _MOST_DIGITS


def _same_order(value: float, direction: Direction, reference: float, digits: int) -> bool:
    shown, limit = rounded(value, direction, digits), rounded(reference, "nearest", digits)
    return (shown > limit) == (value > reference) and (shown < limit) == (value < reference)


def toward(value: float, limit: float) -> Direction:
    """Return the direction in which rounding ``value`` overstates no distance to ``limit``."""
    if value == limit:
        return "nearest"
    return "down" if value > limit else "up"


def against(observed: float, limit: float, direction: Direction | None = None) -> tuple[str, str]:
    """Return ``observed`` and ``limit`` for people, in the order of the computed numbers.

    Without a ``direction`` the observed number is rounded towards the limit.
    """
    towards = direction or toward(observed, limit)
    digits = digits_apart([(observed, towards)], [limit])
    return number(observed, towards, digits), number(limit, "nearest", digits)


def rows(count: float, direction: Direction = "nearest") -> str:
    """Return a number of rows, a whole one, for instance ``48,842``."""
    if math.isinf(count):
        return number(count)
    if direction == "down":
        return number(math.floor(count))
    return number(math.ceil(count) if direction == "up" else round(count))


def counted_as(mechanism: str) -> str:
    """Return what is counted of a node by its mechanism's name: people over several releases."""
    return "people" if mechanism == "repeated" else "rows"


def percent(level: float) -> str:
    """Return a confidence ``level`` in (0, 1) such as ``95 %``; its error is rounded up."""
    error = Decimal(1) - Decimal(repr(float(level)))
    step = Decimal(1).scaleb(error.adjusted() - 1)
    if error.adjusted() - 1 >= _exponent(error):
        error = error.quantize(step, rounding=ROUND_CEILING)
    return f"{((1 - error) * 100).normalize():f} %"


def fold(epsilon: float, direction: Direction = "nearest", digits: int = 1) -> str:
    """Return by how much an ε or a loss shifts the odds of two labels, for instance 2.72-fold."""
    factor = _factor(epsilon)
    if math.isinf(factor):
        return "without limit"
    return f"{number(factor, direction, max(digits, 2 if factor < 10 else 1))}-fold"


def folds(bound: float, limit: float) -> tuple[str, str]:
    """Return :func:`fold` of a lower bound of ε and of the limit that it exceeds, never in reverse.

    Where the usual digits do not tell them apart, both get as many as it takes.
    """
    factors = _factor(bound), _factor(limit)
    usual = 2 if max(factors) < 10 else 1
    digits = digits_apart([(factors[0], "down")], factors[1:], usual)
    more = digits if digits > usual else 1
    return fold(bound, "down", more), fold(limit, digits=more)


def _factor(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < 700 else math.inf


def as_percent(text: str) -> str:
    """Return a printed share as a percentage with the same digits: ``0.900`` becomes ``90.0 %``."""
    # A range, ``0.5 to 1``, becomes ``50 to 100 %``.
    first, to, last = text.partition(" to ")
    if to:
        return f"{as_percent(first).removesuffix(_PERCENT)} to {as_percent(last)}"
    relation, _, digits = text.rpartition(" ")
    shifted = Decimal(digits.replace("−", "-").replace(",", "")).scaleb(2)
    return f"{relation} {shifted:f}{_PERCENT}".strip().replace("-", "−")


def share_of(share: float) -> str:
    """Return a share of people such as ``19 %``; 100 % is said of all of them alone."""
    percents = 100 * share
    if percents < 99.5:
        return f"{percents:.2g} %"
    return f"{math.floor(10 * percents + 1e-9) / 10:g} %"


def at_least(share: float) -> str:
    """Return a share that is in effect a lower bound: ``at least 19 %``, rounded down; ``all``."""
    if share >= 1:
        return "all"
    exact = Decimal(repr(float(100 * share)))
    step = Decimal(1).scaleb(min(exact.adjusted() - 1, 0) if exact else 0)
    least = (exact + Decimal("1e-9")).quantize(step, rounding=ROUND_FLOOR)
    return f"at least {least.normalize(_CONTEXT):f} %"


def p_words(p_value: float) -> str:
    """Return a p-value for a sentence, rounded up: ``p = 0.0031``, ``p below 1e−12``."""
    if p_value <= _SMALLEST_P:
        return f"p below {number(_SMALLEST_P)}"
    return f"p = {number(p_value, 'up')}"


def share_up(share: float) -> str:
    """Return a share as a percentage that is not too small, such as ``2.68 %``."""
    return f"{number(100 * share, 'up', 2)} %"
