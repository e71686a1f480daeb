"""The channel behind released labels, guessed from the labels and features alone.

Confident learning counts a row as one of class y when its probability of y, by a model that has not
seen its label, is at least the average probability of y among the rows labelled y.
"""

import numpy as np

from ldpaudit.release import FloatArray, IntArray, label_table

_LEAST = 1e-3


def confident_channel(posterior: FloatArray, released: IntArray) -> FloatArray:
    """Return an estimate of T[y, ỹ], float64 of shape (k, k), rows summing to 1.

    Parameters
    ----------
    posterior : float64 array of shape (n, k)
        P(ỹ | x) of each row by a model that was fitted on other rows.
    released : int32 array of shape (n,)
        The released labels, codes of the same k classes.

    Notes
    -----
    A heuristic without guarantee: it is right where classes lie far apart, and takes rows between
    two classes for noise. A class of which no row is confident keeps its label.

    References
    ----------
    Northcutt, Jiang and Chuang (2021), Confident learning, section 3.1 (Eqs. 1 and 2, with the
    joint's rows scaled to the counts of released labels).
    """
    joint = _joint(posterior, released)
    seen = np.bincount(released, minlength=len(joint)).astype(np.float64)
    confident = joint.sum(axis=1)
    # Rows of the joint are released labels; each is scaled to how many rows carry that label.
    joint *= (seen / np.where(confident > 0, confident, 1.0))[:, None]
    mass = joint.sum(axis=0)
    channel = np.where(mass[:, None] > 0, joint.T / np.where(mass > 0, mass, 1.0)[:, None], 0.0)
    channel[mass == 0] = np.eye(len(joint))[mass == 0]
    mixed = (1 - _LEAST) * channel + _LEAST / len(joint)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def _joint(posterior: FloatArray, released: IntArray) -> FloatArray:
    """Return how many confident rows of each released label (row) are of each class (column)."""
    k = posterior.shape[1]
    seen = np.bincount(released, minlength=k)
    own = posterior[np.arange(len(released)), released]
    total = np.bincount(released, weights=own, minlength=k)
    threshold = np.where(seen > 0, total / np.maximum(seen, 1), np.inf)
    above = np.where(posterior >= threshold, posterior, -1.0)
    sure = above.max(axis=1) >= 0
    return label_table(released[sure], above[sure].argmax(axis=1), k, k).astype(np.float64)
