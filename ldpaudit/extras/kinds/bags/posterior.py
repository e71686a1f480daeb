"""The exact posterior of every label in a bag, given the bag's released sum.

Of a bag only the sum of its labels is released. With independent labels of known probabilities p_i
the sum is Poisson-binomial, and

    P(y_i = 1 | o) = p_i Σ_s PB₋ᵢ(s − 1) P(o | s) / Σ_s PB(s) P(o | s).

A forward and a backward pass over the bag give all of them in O(k²) additions of positive terms.
Tilting all odds by one factor changes no posterior of the labels given the sum; tilted to where the
released sum is likely, nothing underflows.

References
----------
Busa-Fekete et al. (2024), Auditing Privacy Mechanisms via Label Inference Attacks.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import expit, logit

from ldpaudit.arrays import stable_order
from ldpaudit.doors import FloatArray, IndexArray, InputError

LARGEST_BAG: Final = 4096
_FLOOR: Final = 1e-9
_WIDEST: Final = 60.0

# log P(released | true sum) of released sums (b,) and one bag size k: float64 of (b, k + 1).
Likelihood = Callable[[FloatArray, int], FloatArray]


def bag_posterior(
    priors: FloatArray,
    members: IndexArray,
    released: FloatArray,
    likelihood: Likelihood,
    epsilon: float,
) -> FloatArray:
    """Return P(y_i = 1 | the bag's released sum) for every row.

    Parameters
    ----------
    priors : float64 array of shape (n,)
        P(y_i = 1) before the release, taken to be independent; drawn into [1e-9, 1 − 1e-9].
    members : int64 array of shape (n,)
        The bag of each row, 0 … b − 1.
    released : float64 array of shape (b,)
        The released sum of each bag.
    likelihood : callable
        log P(released | sum), see :data:`Likelihood`.
    epsilon : float
        The largest slope of the log-likelihood in the sum, ∞ without noise.

    Returns
    -------
    float64 array of shape (n,)
        P(y_i = 1) after the release.

    Raises
    ------
    InputError
        If a bag has more than 4,096 rows.
    """
    sizes = np.bincount(members, minlength=len(released))
    if sizes.max(initial=0) > LARGEST_BAG:
        raise InputError(
            f"A bag must have at most {LARGEST_BAG} rows for its exact posterior; one has "
            f"{int(sizes.max())}."
        )
    order = stable_order(members)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    result = np.empty(len(priors))
    clipped = np.clip(priors, _FLOOR, 1 - _FLOOR)
    for size in np.unique(sizes[sizes > 0]):
        bags = np.flatnonzero(sizes == size)
        most = max((1 << 22) // int((size + 1) ** 2), 1)
        for first in range(0, len(bags), most):
            chunk = bags[first : first + most]
            rows = order[starts[chunk][:, None] + np.arange(size)[None, :]]
            weights = likelihood(released[chunk], int(size))
            result[rows] = _of_one_size(clipped[rows], released[chunk], weights, epsilon)
    return result


def _of_one_size(
    priors: FloatArray, released: FloatArray, log_weights: FloatArray, epsilon: float
) -> FloatArray:
    """Return the posteriors of bags of one size k: all arrays have shape (b, k) or (b, k + 1)."""
    b, k = priors.shape
    tilt = _tilt(priors, released, epsilon)
    p = expit(logit(priors) + tilt[:, None])
    log_weights = log_weights - tilt[:, None] * np.arange(k + 1)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    forward = np.zeros((k, b, k + 1))
    state = np.zeros((b, k + 1))
    state[:, 0] = 1.0
    for i in range(k):
        forward[i] = state
        state = (1 - p[:, i, None]) * state
        state[:, 1:] += p[:, i, None] * forward[i][:, :-1]
    posterior, backward = np.empty((b, k)), weights
    for i in range(k - 1, -1, -1):
        # forward[i] holds the sums of the rows before i, backward what the rows after i say.
        yes = p[:, i] * np.einsum("bs,bs->b", forward[i][:, :-1], backward[:, 1:])
        no = (1 - p[:, i]) * np.einsum("bs,bs->b", forward[i], backward)
        posterior[:, i] = yes / (yes + no)
        shifted = np.pad(backward[:, 1:], ((0, 0), (0, 1)))
        backward = (1 - p[:, i, None]) * backward + p[:, i, None] * shifted
    return posterior


def _tilt(priors: FloatArray, released: FloatArray, epsilon: float) -> FloatArray:
    """Return the shift of log-odds under which the most probable sum is expected."""
    # The mode of PB(s) e^{−ε|o − s|} lies where the tilt that moves the mean there is ε, or at o.
    k = priors.shape[1]
    odds, target = logit(priors), np.clip(released, 0.25, k - 0.25)
    low, high = np.full(len(priors), -_WIDEST), np.full(len(priors), _WIDEST)
    for _ in range(60):
        middle = (low + high) / 2
        short = expit(odds + middle[:, None]).sum(axis=1) < target
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.asarray(np.clip((low + high) / 2, -epsilon, epsilon))


def log_odds_shift(priors: FloatArray, posterior: FloatArray) -> FloatArray:
    """Return |logit posterior − logit prior|, the multiplicative advantage, float64 of shape (n,).

    ∞ where the release leaves no doubt.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.abs(logit(posterior) - logit(np.clip(priors, _FLOOR, 1 - _FLOOR))))
