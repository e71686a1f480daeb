"""The exact conditional confidence bound of an odds ratio, for tables of any size."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray

# A window of 14 standard deviations leaves less than 1e-40 of a log-concave distribution outside.
_REACH, _SLACK = 14.0, 120


def log_odds_ratio_lower(table: npt.NDArray[np.integer[Any]], alpha: float) -> float:
    """Return the exact lower confidence bound of log θ, θ = t₁₁t₀₀/(t₀₁t₁₀).

    Parameters
    ----------
    table : integer array of shape (2, 2)
        Independent rows counted by two labels; only its odds ratio is bounded, so neither the
        labels' nor the outputs' frequencies matter.
    alpha : float
        One-sided error probability.

    Returns
    -------
    float
        The θ at which P(X ≥ table[1, 1] | margins) = alpha under Fisher's noncentral
        hypergeometric distribution, as a logarithm; −∞ where table[1, 1] is as small as its
        margins allow.

    References
    ----------
    Cornfield (1956), A statistical problem arising from retrospective studies.
    """
    if np.shape(table) != (2, 2):
        raise InputError(f"An odds ratio must have a 2 × 2 table, got {np.shape(table)}.")
    cells = [float(c) for c in np.ravel(table)]
    if min(cells[0], cells[3]) == 0:
        return -math.inf
    level = math.log(alpha) - math.log1p(-alpha)
    tail = _Tail(cells)

    def excess(log_theta: float) -> float:
        return tail.logit(log_theta) - level

    a, b, c, d = (cell + 0.5 for cell in cells)
    width = math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    low = high = math.log(a * d / (b * c)) - 2 * width
    while excess(low) > 0:
        low -= 2 * width
    while excess(high) <= 0:
        high += width
    # The lower end of the last bracket: rounding may only make the bound smaller.
    return float(brentq(excess, low, high, xtol=1e-10)) - 2e-10


def upper_tail_probability(table: npt.NDArray[np.integer[Any]], log_theta: float) -> float:
    """Return P(X ≥ table[1, 1] | margins) at odds ratio θ: the p-value of "log θ is no larger"."""
    logit = _Tail([float(c) for c in np.ravel(table)]).logit(log_theta)
    return 1.0 / (1.0 + math.exp(-logit)) if logit > -700 else 0.0


class _Tail:
    """The upper tail of cell (1, 1), X ≥ x₀ the observed count, at one odds ratio after another.

    Parameters
    ----------
    cells : list of float
        The table's counts, row by row.
    """

    def __init__(self, cells: list[float]) -> None:
        self._cells = cells
        self._start, self._stop = 1, 0

    def logit(self, log_theta: float) -> float:
        """Return the log-odds of X ≥ x₀ at a log odds ratio."""
        start, stop = self._window(log_theta)
        if start < self._start or stop > self._stop:
            self._sum_up(start, stop, log_theta)
        if self._start == 0:
            return math.inf
        terms = self._terms + (log_theta - self._at) * self._steps
        return _log_sum(terms[-self._start :]) - _log_sum(terms[: -self._start])

    def _window(self, log_theta: float) -> tuple[int, int]:
        """Return the least and the largest X − x₀ that matter."""
        n00, n01, n10, n11 = self._cells
        mode, spread = _mode(self._cells, log_theta)
        reach = _REACH * spread + _SLACK
        start = max(-min(n11, n00), math.floor(min(mode, 0.0) - reach))
        return int(start), int(min(n01, n10, math.ceil(max(mode, 0.0) + reach)))

    def _sum_up(self, start: int, stop: int, log_theta: float) -> None:
        """Store log P(X = x₀ + j) up to a constant: it serves for odds ratios nearby, too."""
        n00, n01, n10, n11 = self._cells
        more = (stop - start) // 8
        start, stop = max(start - more, int(-min(n11, n00))), min(stop + more, int(min(n01, n10)))
        steps = np.arange(start, stop, dtype=np.float64)
        # Logarithm of P(x₀ + j + 1)/P(x₀ + j), summed outward from x₀: no large factorials.
        ratio = np.log((n01 - steps) * (n10 - steps)) + log_theta
        ratio -= np.log((n11 + steps + 1) * (n00 + steps + 1))
        upper, lower = np.cumsum(ratio[-start:]), -np.cumsum(ratio[:-start][::-1])[::-1]
        self._terms = np.concatenate([lower, [0.0], upper])
        self._steps = np.arange(start, stop + 1, dtype=np.float64)
        self._start, self._stop, self._at = start, stop, log_theta


def _mode(cells: list[float], log_theta: float) -> tuple[float, float]:
    """Return where X − x₀ is most likely, and about its standard deviation.

    The root j of (n₁₁ + j)(n₀₀ + j) = θ(n₀₁ − j)(n₁₀ − j).
    """
    n00, n01, n10, n11 = cells
    theta = math.exp(min(max(log_theta, -600.0), 600.0))
    a, b, c = 1 - theta, n11 + n00 + theta * (n01 + n10), n11 * n00 - theta * n01 * n10
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    mode = -2 * c / (b + root) if b + root > 0 else 0.0
    parts = [max(n00 + mode, 0.5), max(n01 - mode, 0.5), max(n10 - mode, 0.5), max(n11 + mode, 0.5)]
    return mode, 1.0 / math.sqrt(sum(1 / part for part in parts))


def _log_sum(terms: FloatArray) -> float:
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))
