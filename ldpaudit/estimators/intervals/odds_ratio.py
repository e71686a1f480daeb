"""The exact conditional confidence bound of an odds ratio, for tables of any size."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon.bounds import EpsilonBound, smallest_positive
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

    def excess(log_theta: float) -> float:
        return _logit_upper_tail(cells, log_theta) - level

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
    logit = _logit_upper_tail([float(c) for c in np.ravel(table)], log_theta)
    return 1.0 / (1.0 + math.exp(-logit)) if logit > -700 else 0.0


def odds_ratio_bound(table: npt.NDArray[np.integer[Any]], alpha: float) -> EpsilonBound:
    """Bound ε by the odds ratio of two labels and two outputs, in nats: θ ≤ e^{2ε}.

    T[1,1]T[0,0]/(T[0,1]T[1,0]) is a product of two likelihood ratios, each at most e^ε, so
    ε ≥ ½ log θ. Rows with other labels or outputs may be left out: the odds ratio of what remains
    is the same. Tight for symmetric channels, whatever the labels' frequencies.

    Parameters
    ----------
    table : integer array of shape (2, 2)
        Rows by true label and output, in the same order.
    alpha : float
        One-sided error probability.
    """
    epsilon = max(0.5 * log_odds_ratio_lower(table, alpha), 0.0)
    n = int(np.sum(table))
    return EpsilonBound(epsilon, alpha, n, "odds-ratio", smallest_positive(table))


def _logit_upper_tail(cells: list[float], log_theta: float) -> float:
    """Return the log-odds of X ≥ x₀ at a log odds ratio, x₀ the observed count of cell (1, 1)."""
    n00, n01, n10, n11 = cells
    first, last = -min(n11, n00), min(n01, n10)
    mode, spread = _mode(cells, log_theta)
    reach = _REACH * spread + _SLACK
    start = max(first, math.floor(min(mode, 0.0) - reach))
    stop = min(last, math.ceil(max(mode, 0.0) + reach))
    steps = np.arange(start, stop)
    # Logarithm of P(x₀ + j + 1)/P(x₀ + j), summed outward from x₀: no large factorials.
    ratio = np.log((n01 - steps) * (n10 - steps)) + log_theta
    ratio -= np.log((n11 + steps + 1) * (n00 + steps + 1))
    zero = int(-start)
    upper = np.concatenate([[0.0], np.cumsum(ratio[zero:])])
    lower = -np.cumsum(ratio[:zero][::-1])
    if lower.size == 0:
        return math.inf
    return _log_sum(upper) - _log_sum(lower)


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
