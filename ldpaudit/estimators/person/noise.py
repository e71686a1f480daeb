"""Does the noise of two releases go together? Exact tests with true labels.

A label counts as changed by noise where the answer is not its commonest one. Given how many were
changed in each release, of people with the same true labels, independent noise spreads both over
them at random: how many were changed twice is a sum of independent hypergeometric counts.
"""

from typing import Final

import numpy as np

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray, IntArray
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.estimators.person.shared_draws import paired_p_value

_FEWEST: Final = 30
"""Fewer people than this are not tested."""


def changed_by_noise(labels: IntArray, released: IntArray) -> BoolArray:
    """Return which answers are not the commonest one of their true label, bool of shape (n,)."""
    k, m = int(labels.max(initial=0)) + 1, int(released.max(initial=0)) + 1
    counts = np.bincount(labels.astype(np.int64) * m + released, minlength=k * m).reshape(k, m)
    return np.asarray(counts.argmax(axis=1)[labels] != released)


def association_p_value(first: BoolArray, second: BoolArray, strata: IndexArray) -> float | None:
    """Return the exact two-sided p-value of independence within strata; None for too few people.

    Parameters
    ----------
    first, second : bool arrays of shape (n,)
        What noise changed in each of two releases.
    strata : int64 array of shape (n,)
        Codes of people with the same true labels.
    """
    if len(first) < _FEWEST:
        return None
    return max(paired_p_value(first, second, strata), SMALLEST_P_VALUE)


def agreement_share(
    agreeing: int, people: int, expected: float, alpha: float
) -> tuple[float, float, float]:
    """Return which share of answers was remembered, with a two-sided interval at level 1 − alpha.

    Parameters
    ----------
    agreeing, people : int
        People whose label did not change, and how many of them have the same answer twice.
    expected : float
        The mean chance of that with fresh noise, below 1.

    Returns
    -------
    tuple of three float
        The share s at which agreement is s + (1 − s)·expected, its lower and its upper bound; exact
        for people with chances of their own (Hoeffding 1956).
    """
    shares = (
        agreeing / people,
        float(trials_lower(agreeing, people, alpha / 2)),
        float(trials_upper(agreeing, people, alpha / 2)),
    )
    value, low, high = (min(max((a - expected) / (1 - expected), 0.0), 1.0) for a in shares)
    return value, low, high


def fresh_agreement(one: FloatArray, two: FloatArray, sizes: IndexArray) -> float:
    """Return the mean chance that fresh answers agree, for people of each true label (k,)."""
    return float(sizes @ (one * two).sum(axis=1) / sizes.sum())
