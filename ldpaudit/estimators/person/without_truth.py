"""Fresh or remembered noise of two releases, without true labels: exact tests of either.

Whatever the true labels are and however they changed, with fresh noise the answers of a person in
two releases are a mixture of the products of the channels' rows; with remembered noise a mixture of
those for labels that changed and of one answer, given twice, for labels that did not. A mixture is
refuted where none lies within simultaneous confidence intervals of the counts.
"""

from typing import Final

import numpy as np
from scipy.optimize import linprog
from scipy.stats import binom

from ldpaudit.arrays import FloatArray, IndexArray
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE, marginal_consistency
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper

_LARGEST: Final = 40_000
"""The most entries of a mixture's matrix that is looked at as a whole."""


def fresh_p_value(counts: IndexArray, one: FloatArray, two: FloatArray) -> float:
    """Return a p-value of fresh noise, whatever the true labels are.

    The smaller of two, doubled: that people agree no more often than fresh answers of any labels
    can, and that a mixture exists.

    Parameters
    ----------
    counts : int64 array of shape (m, m)
        People by their answers in the first and the second release.
    one, two : float64 arrays of shape (k, m)
        The claimed channels.
    """
    agreeing, people = int(np.trace(counts)), int(counts.sum())
    agreed = float(binom.sf(agreeing - 1, people, min(largest_agreement(one, two), 1.0)))
    mixed = _mixture_p_value(counts, fresh_mixture(one, two))
    smallest = agreed if mixed is None else 2 * min(agreed, mixed)
    return float(np.clip(smallest, SMALLEST_P_VALUE, 1.0))


def remembered_p_value(counts: IndexArray, one: FloatArray, two: FloatArray) -> float | None:
    """Return a p-value of remembered noise, whatever the true labels are; None if too large."""
    return _mixture_p_value(counts, remembered_mixture(one, two))


def largest_agreement(one: FloatArray, two: FloatArray) -> float:
    """Return the largest chance that fresh answers of any two labels agree."""
    return float((one @ two.T).max())


def remembered_share_lower(
    agreeing: int, people: int, one: FloatArray, two: FloatArray, alpha: float
) -> float:
    """Return a lower bound of the share of answers that were given twice, at level 1 − alpha."""
    most = largest_agreement(one, two)
    low = float(clopper_pearson_lower(agreeing, people, alpha))
    return max((low - most) / (1 - most), 0.0) if most < 1 else 0.0


def least_changed(counts: IndexArray, mixture: FloatArray, alpha: float) -> float | None:
    """Return the least share of people whose label must have changed, at level 1 − alpha.

    Parameters
    ----------
    counts : int64 array of shape (m, m)
    mixture : float64 array of shape (k², m²)
        Of either kind of noise, rows in the order of pairs of labels.

    Returns
    -------
    float or None
        None where no mixture fits at all, or it is too large.
    """
    if mixture.size > _LARGEST:
        return None
    k = round(len(mixture) ** 0.5)
    cost = 1.0 - np.eye(k).reshape(-1)
    flat, n = counts.reshape(-1), int(counts.sum())
    tail = alpha / (2 * len(flat))
    low, high = clopper_pearson_lower(flat, n, tail), clopper_pearson_upper(flat, n, tail)
    found = linprog(
        cost,
        A_ub=np.concatenate([mixture.T, -mixture.T]),
        b_ub=np.concatenate([high, -low]),
        A_eq=np.ones((1, k * k)),
        b_eq=[1.0],
        bounds=(0, 1),
        method="highs",
    )
    return max(float(found.fun or 0.0), 0.0) if found.status == 0 else None


def fresh_mixture(one: FloatArray, two: FloatArray) -> FloatArray:
    """Return the chances of each pair of answers given each pair of labels, (k², m²)."""
    return np.asarray(np.kron(one, two))


def remembered_mixture(one: FloatArray, two: FloatArray) -> FloatArray:
    """Return the same where a label that did not change keeps its answer."""
    k, m = one.shape
    mixture = np.kron(one, two).reshape(k, k, m, m)
    for label in range(k):
        mixture[label, label] = np.diag(one[label])
    return np.asarray(mixture.reshape(k * k, m * m))


def _mixture_p_value(counts: IndexArray, mixture: FloatArray) -> float | None:
    if mixture.size > _LARGEST:
        return None
    return marginal_consistency(counts.reshape(-1), mixture)
