"""Certified lower bounds of a label channel's ε from counts of true against released labels.

Every bound here holds with probability at least 1 − alpha, over the mechanism's randomness, for
every ε-label-DP channel that is the same for all rows, whatever the true labels are; rows are
released independently. A channel that depends on the features needs other methods: there a
released label may reveal features alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.release import FloatArray, IndexArray

_ROUNDING = 1e-12

CountTable = npt.NDArray[np.integer[Any]]
"""Rows counted by true label and output, shape (k, m)."""


@dataclass(frozen=True)
class EpsilonBound:
    """A one-sided lower confidence bound of ε.

    Attributes
    ----------
    epsilon : float
        The bound in nats, at least 0; valid with probability at least 1 − ``alpha``.
    alpha : float
        The error probability.
    n : int
        The rows that were counted.
    method : str
        ``"accuracy"``, ``"two-sided"`` or ``"odds-ratio"``.
    """

    epsilon: float
    alpha: float
    n: int
    method: str


def epsilon_of_accuracy(accuracy: FloatArray, sizes: npt.NDArray[Any]) -> FloatArray:
    """Return the smallest ε at which some ε-DP channel lets a guesser be right so often.

    Parameters
    ----------
    accuracy : float64 array of shape (...)
        Mean probabilities of a right guess, in [0, 1].
    sizes : array of shape (..., k)
        How many rows have each true label; at least one row in all.

    Returns
    -------
    float64 array of shape (...)
        Nats. With shares p₁ ≥ p₂ ≥ … and P_j = p₁ + … + p_j, no ε-DP channel exceeds
        max_j P_j e^ε/(e^ε + j − 1); this is its inverse, 0 where accuracy ≤ p₁.

    References
    ----------
    Ghazi, Golowich, Kumar, Manurangsi & Zhang (2021), Deep learning with label differential
    privacy: RR-Top-k maximises the probability of the true label for a known prior.
    """
    accuracy = np.asarray(accuracy, dtype=np.float64)
    shares = -np.sort(-np.asarray(sizes, dtype=np.float64), axis=-1)
    cumulative = np.cumsum(shares, axis=-1) / shares.sum(axis=-1, keepdims=True)
    cumulative[..., -1] = 1.0
    others = np.arange(shares.shape[-1], dtype=np.float64)
    room = cumulative - accuracy[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        per_j = np.where(room > 0, np.log(others * accuracy[..., None]) - np.log(room), np.inf)
    # At p₁ the bound jumps: rounding must not lift an accuracy above it.
    constant = accuracy <= cumulative[..., 0] + _ROUNDING
    return np.asarray(np.where(constant, 0.0, np.maximum(np.min(per_j, axis=-1), 0.0)))


def largest_accuracy(epsilon: float, sizes: npt.NDArray[Any]) -> float:
    """Return the largest mean probability of a right guess under any ε-DP channel.

    max_j P_j e^ε/(e^ε + j − 1), ε in nats: what :func:`epsilon_of_accuracy` inverts.
    """
    shares = -np.sort(-np.asarray(sizes, dtype=np.float64))
    cumulative = np.cumsum(shares) / shares.sum()
    others = np.arange(len(shares), dtype=np.float64)
    return float(np.max(cumulative / (1 + others * math.exp(-epsilon))))


def accuracy_bound(
    correct: int, sizes: npt.NDArray[Any], alpha: float, method: str = "accuracy"
) -> EpsilonBound:
    """Bound ε by how often a fixed guess of the label is right.

    The guess is any function of the released label that was fixed beforehand. Given the true
    labels the number of right guesses is a sum of independent Bernoulli variables whose mean is at
    most the optimum of :func:`epsilon_of_accuracy`; its upper tail is at most a binomial's
    (:func:`trials_lower`). For equal class sizes it is the one-run bound log((k − 1)ℓ/(1 − ℓ)), for
    unequal ones it is what remains true of it: nothing follows from an accuracy that a constant
    guess reaches.

    Parameters
    ----------
    correct : int
        Right guesses.
    sizes : integer array of shape (k,)
        Rows of each true label among the rows counted.
    alpha : float
        One-sided error probability.
    """
    n = int(np.sum(sizes))
    if n == 0:
        return EpsilonBound(0.0, alpha, 0, method)
    level = trials_lower(correct, n, alpha)
    epsilon = float(epsilon_of_accuracy(level, np.asarray(sizes)))
    return EpsilonBound(epsilon, alpha, n, method)


def two_sided_bound(hits: Sequence[int], sizes: Sequence[int], alpha: float) -> EpsilonBound:
    """Bound ε by how often an event happens in two groups: true against false positives.

    The larger of log(TPR_lo/FPR_hi) and log(TNR_lo/FNR_hi), in nats: both follow from the same
    two tails of alpha/2 each.

    Parameters
    ----------
    hits, sizes : two ints each
        Rows with the event and all rows, of the group that should avoid it and of the other one.
    alpha : float
        One-sided error probability.

    References
    ----------
    Jagielski, Ullman & Oprea (2020); Nasr et al. (2021), with Clopper–Pearson bounds.
    """
    low = trials_lower(hits[1], sizes[1], alpha / 2)
    high = trials_upper(hits[0], sizes[0], alpha / 2)
    epsilon = max(_log_ratio(low, high), _log_ratio(1 - high, 1 - low), 0.0)
    return EpsilonBound(epsilon, alpha, sum(sizes), "two-sided")


def _log_ratio(low: FloatArray, high: FloatArray) -> float:
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(low) - np.log(high)))


def class_counts(counts: CountTable) -> IndexArray:
    """Return how many rows have each true label, int64 of shape (k,)."""
    return np.asarray(np.asarray(counts).sum(axis=1, dtype=np.int64))
