"""The exact conditional confidence bound of odds ratios, for tables of any size."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray

# Standard deviations of a count that are summed: a log-concave law has less than 1e-18 beyond.
_REACH = 9.0
_SLACK = 60
_LARGE = 400  # with so many rows in every cell the normal approximation is off by less than 1e-3
_STEP, _PRECISION = 2.0, 1e-9


def log_odds_ratio_lower(
    tables: npt.NDArray[np.integer[Any]], alpha: float, *, exact: bool = True
) -> FloatArray:
    """Return the exact lower confidence bound of log θ, θ = t₁₁t₀₀/(t₀₁t₁₀).

    Parameters
    ----------
    tables : integer array of shape (..., 2, 2)
        Independent rows counted by two labels; only the odds ratio is bounded, so neither the
        labels' nor the outputs' frequencies matter.
    alpha : float
        One-sided error probability.
    exact : bool
        False: tables with at least 400 rows in every cell are bounded by the normal approximation,
        for simulations.

    Returns
    -------
    float64 array of shape (...)
        The θ at which P(X ≥ t₁₁ | margins) = alpha under Fisher's noncentral hypergeometric
        distribution, as a logarithm; −∞ where t₁₁ is as small as its margins allow.

    References
    ----------
    Cornfield (1956), A statistical problem arising from retrospective studies.
    """
    tables = np.asarray(tables)
    if tables.shape[-2:] != (2, 2):
        raise InputError(f"An odds ratio must have a 2 × 2 table, got {tables.shape}.")
    cells = tables.reshape(-1, 4).astype(np.float64)
    half = cells + 0.5
    bounds = np.log(half[:, 0]) + np.log(half[:, 3]) - np.log(half[:, 1]) - np.log(half[:, 2])
    bounds += ndtri(alpha) * np.sqrt((1 / half).sum(axis=1))
    possible = np.minimum(cells[:, 0], cells[:, 3]) > 0
    bounds[~possible] = -math.inf
    solved = possible & (exact | (cells.min(axis=1) < _LARGE))
    if solved.any():
        bounds[solved] = _solved(cells[solved], bounds[solved], alpha)
    return np.asarray(bounds.reshape(tables.shape[:-2]))


def _solved(cells: FloatArray, log_theta: FloatArray, alpha: float) -> FloatArray:
    """Return where the tail is alpha by Newton's method, from about there; cells (t, 4).

    The tail's log-odds are nearly linear in log θ; their derivative is the difference of the mean
    counts in the tail and outside it.
    """
    spread = float(np.max((1 / (cells + 0.5)).sum(axis=1) ** -0.5))
    below = int(_SLACK + (_REACH - ndtri(alpha)) * spread)
    steps = np.arange(-below, int(_SLACK + _REACH * spread) + 1, dtype=np.float64)
    n00, n01, n10, n11 = (column[:, None] for column in cells.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Logarithm of P(x₀ + j + 1)/P(x₀ + j), summed outward from x₀: no large factorials.
        j = steps[:-1]
        ratio = np.log((n01 - j) * (n10 - j)) - np.log((n11 + j + 1) * (n00 + j + 1))
        ratio = np.where((j < 0) & (j < -np.minimum(n00, n11)), np.inf, ratio)
        ratio = np.where((j >= 0) & (j >= np.minimum(n01, n10)), -np.inf, ratio)
        upper, lower = np.cumsum(ratio[:, below:], axis=1), ratio[:, :below]
        lower = -np.cumsum(lower[:, ::-1], axis=1)[:, ::-1]
    logs = np.concatenate([lower, np.zeros((len(cells), 1)), upper], axis=1)
    level = math.log(alpha) - math.log1p(-alpha)
    for _ in range(100):
        terms = logs + log_theta[:, None] * steps
        mass = np.exp(terms - terms.max(axis=1, keepdims=True))
        tail, rest = mass[:, below:].sum(axis=1), mass[:, :below].sum(axis=1)
        tail, rest = np.maximum(tail, 1e-300), np.maximum(rest, 1e-300)
        slope = mass[:, below:] @ steps[below:] / tail - mass[:, :below] @ steps[:below] / rest
        change = np.clip((level - np.log(tail) + np.log(rest)) / slope, -_STEP, _STEP)
        log_theta = log_theta + change
        if np.abs(change).max() < _PRECISION:
            break
    # Rounding may only make the bound smaller.
    return np.asarray(log_theta - 2 * _PRECISION)
