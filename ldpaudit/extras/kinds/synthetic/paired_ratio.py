"""Exact confidence limits of the ratio of two shares that were counted on the same pairs.

Of each pair one person has a property or not, and the other one; p₀₁, p₁₀ and p₀₀ are the chances
that the first one lacks it alone, the second one alone, and both. The ratio of the shares that lack
it, ρ = (p₀₁ + p₀₀)/(p₁₀ + p₀₀), is tested by the score

    (n₀₁ + n₀₀ − ρ(n₁₀ + n₀₀)) / √(N(p₀₁ + ρ² p₁₀ + (1 − ρ)² p₀₀)),

with the likeliest chances under ρ in the denominator. N pairs in which somebody lacks it have three
outcomes, so of the chances one number besides ρ is unknown: the p-value is the largest over an
interval of it, plus the error of that interval (Berger & Boos 1994), summed over all outcomes that
are as extreme. It is exact for independent pairs.

References
----------
Nam & Blackwelder (2002), Analysis of the ratio of marginal probabilities in a matched-pair setting;
Tang, Tang & Chan (2003), On tests of equivalence via non-unity relative risk; Berger & Boos (1994),
P values maximized over a confidence set for the nuisance parameter.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr, xlogy

from ldpaudit.doors import FloatArray, clopper_pearson
from ldpaudit.error_budget import Split

_TEST: Final = Split({"unknown chance": 0.02})  # the ratio has what is left
_POINTS: Final = 7  # at which its p-value is looked for
_FAR: Final = 6.0  # standard deviations within which outcomes are added up
_OUTSIDE: Final = 1e-7  # at most as likely are the others, which count as extreme
_MANY: Final = 100  # of each one-sided outcome, from which the normal law is exact enough
_STEPS: Final = 12
_LEAST: Final = 1e-9  # ratio that is tested


class Pairs(NamedTuple):
    """Pairs in which the first lacks a property alone, the second alone, and both."""

    first: int
    second: int
    both: int


def _score(first: FloatArray, second: FloatArray, both: FloatArray, ratio: float) -> FloatArray:
    """Return the score: negative where the first lack it more rarely than ρ says."""
    # The likeliest p₁₀ = q under ρ, with p₀₁ = (ρ − 1 + q)/ρ and p₀₀ = (1 − (1 + ρ)q)/ρ, solves a
    # quadratic equation.
    number = first + second + both
    a = -(1 + ratio) * number
    b = first + second * (1 - (1 + ratio) * (ratio - 1)) - both * (1 + ratio) * (ratio - 1)
    c = second * (ratio - 1)
    q = (-b - np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))) / (2 * a)
    q = np.clip(q, max(0.0, 1 - ratio), 1 / (1 + ratio))
    s = np.clip((1 - (1 + ratio) * q) / ratio, 0.0, 1.0)
    variance = number * np.maximum(1 - q - s + q * ratio**2 + s * (1 - ratio) ** 2, 1e-300)
    return np.asarray((first + both - ratio * (second + both)) / np.sqrt(variance))


def ratio_p_value(pairs: Pairs, ratio: float, alpha: float, *, low: bool) -> float:
    """Return the p-value of a ratio: of fewer of the first (``low``), or of more."""
    number, side = sum(pairs), 1.0 if low else -1.0
    first, second, both = (np.array(float(count)) for count in pairs)
    seen = side * float(_score(first, second, both, ratio))
    if min(pairs.first, pairs.second) >= _MANY:
        return float(ndtr(seen))
    least, most = max(0.0, 1 - ratio), 1 / (1 + ratio)
    error = _TEST.of(alpha, "unknown chance")
    ends = clopper_pearson(pairs.second, number, error)
    # Some q under ρ may lie outside all that the counts allow: then they speak against ρ.
    low_q, high_q = max(float(ends[0]), least), min(float(ends[1]), most)
    if low_q > high_q:
        return error
    seconds = np.linspace(low_q, high_q, _POINTS)
    firsts = np.clip((ratio - 1 + seconds) / ratio, 0.0, 1.0)
    x, y = _window(number, firsts)[:, None], _window(number, seconds)[None]
    z = number - x - y
    extreme = (z >= 0) & (side * _score(x, y, np.maximum(z, 0.0), ratio) <= seen + 1e-9)
    kept = np.nonzero(extreme)
    x, y, z = x[kept[0], 0], y[0, kept[1]], z[kept]
    orders = gammaln(number + 1) - gammaln(x + 1) - gammaln(y + 1) - gammaln(z + 1)
    rests = np.maximum(1 - firsts - seconds, 0.0)
    largest = max(
        float(np.exp(orders + xlogy(x, p) + xlogy(y, q) + xlogy(z, rest)).sum())
        for p, q, rest in zip(firsts, seconds, rests, strict=True)
    )
    return min(largest + error + _OUTSIDE, 1.0)


def _window(number: int, chances: FloatArray) -> FloatArray:
    """Return the counts that are not too far from what any of the chances lets expect."""
    means = number * chances
    wide = _FAR * np.sqrt(means * (1 - chances)) + 12
    low, high = (
        max(math.floor((means - wide).min()), 0),
        min(math.ceil((means + wide).max()), number),
    )
    return np.arange(low, high + 1, dtype=np.float64)


def ratio_interval(pairs: Pairs, alpha: float) -> tuple[float, float]:
    """Return the confidence interval of ρ at 1 − alpha, each end at alpha/2; 0 … ∞ if unknown."""
    number = sum(pairs)
    if pairs.second + pairs.both == 0:
        return 0.0, math.inf
    fails = pairs.second + pairs.both
    estimate = (pairs.first + pairs.both) / fails
    # Four standard errors by the delta method hold the end, or more are taken.
    score = pairs.first + estimate**2 * pairs.second + (1 - estimate) ** 2 * pairs.both
    far = 4 * (math.sqrt(score) + 2) / fails
    ends = []
    for low in (False, True):  # At the lower end of ρ too many lack it, at the upper one too few.

        def holds(ratio: float, low: bool = low) -> bool:
            return ratio_p_value(pairs, ratio, alpha, low=low) > alpha / 2

        inner = max(estimate, _LEAST)
        outer = inner + far if low else max(estimate - far, _LEAST)
        while holds(outer) and (_LEAST < outer < number + 2):
            inner, outer = outer, (2 * outer if low else max(outer - far, _LEAST))
        if outer == inner or holds(outer):
            ends.append(math.inf if low else 0.0)
            continue
        for _ in range(_STEPS):
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if holds(middle) else (inner, middle)
        ends.append(outer)
    return ends[0], ends[1]
