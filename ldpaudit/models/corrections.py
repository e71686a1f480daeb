"""What released labels say of true ones, by the channel between them.

The forward correction sends a model's probabilities through the channel; the other way the nearest
probabilities of true labels are found.
"""

from typing import Final

import numpy as np

from ldpaudit.release import FloatArray

_EM_STEPS: Final = 100
_FLOOR: Final = 1e-6


def forward_losses(probability: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Return the forward log-loss −log Σ_y p_y T[y, z] of each row in nats, shape (n,).

    Both arguments are float64 arrays of shape (n, k): the model's probabilities, and the channel's
    T[y, z] at the released label z for every y.

    References
    ----------
    Patrini et al. (2017), Theorem 2.
    """
    evidence = (probability * likelihood).sum(axis=1)
    return np.asarray(-np.log(np.maximum(evidence, 1e-300)))


def forward_loss(probability: FloatArray, likelihood: FloatArray) -> float:
    """Return the mean of :func:`forward_losses`."""
    return float(forward_losses(probability, likelihood).mean())


def conditioned(posterior: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Return P(y | x, ỹ) ∝ P(y | x) P(ỹ | y, x): Bayes' rule.

    Parameters
    ----------
    posterior : float64 array of shape (n, k)
        P(y | x) of each row.
    likelihood : float64 array of shape (n, k)
        P(ỹ | y, x) at each row's released label ỹ, for every y.

    Returns
    -------
    float64 array of shape (n, k)
        Rows sum to 1. Where every class excludes the released label the posterior stays as it is.
    """
    joint = posterior * likelihood
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, joint / np.where(total > 0, total, 1.0), posterior))


def onto_simplex(points: FloatArray) -> FloatArray:
    """Return the nearest probability vector of each row, float64 of shape (n, k).

    References
    ----------
    Held, Wolfe, Crowder (1974), Validation of subgradient optimization, section 3.
    """
    k = points.shape[1]
    falling = -np.sort(-points, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, k + 1)
    support = (falling > excess).sum(axis=1)
    shift = excess[np.arange(len(points)), support - 1]
    return np.asarray(np.maximum(points - shift[:, None], 0.0))


def nearest_source(
    released: FloatArray, transition: FloatArray, prior: FloatArray | None = None
) -> FloatArray:
    """Return the η of each row that maximises Σ_z q_z log (η T)_z, float64 of shape (n, k).

    Parameters
    ----------
    released : float64 array of shape (n, m)
        Probabilities q of the released label.
    transition : float64 array of shape (k, m)
        The channel T. Where its rows are linearly dependent, η is one of many.
    prior : float64 array of shape (k,), optional
        Class frequencies above 0, in whose ratio labels are that T does not tell apart.

    Notes
    -----
    Starts from the inverse channel's answer, projected on the simplex, which is η itself wherever
    q is the image of some η; expectation–maximisation does the rest.
    """
    k = len(transition)
    eta = onto_simplex(released @ np.linalg.pinv(transition))
    unfit = np.flatnonzero(np.abs(eta @ transition - released).max(axis=1) > _FLOOR)
    if prior is not None and np.linalg.matrix_rank(transition, tol=1e-9) < k:
        eta, unfit = np.tile(prior, (len(released), 1)), np.arange(len(released))
    part, target = (1 - k * _FLOOR) * eta[unfit] + _FLOOR, released[unfit]
    for _ in range(_EM_STEPS):
        image = part @ transition
        ratio = np.where(target > 0, target / np.where(image > 0, image, 1.0), 0.0)
        part = part * (ratio @ transition.T)
        part /= part.sum(axis=1, keepdims=True)
    eta[unfit] = part
    return eta
