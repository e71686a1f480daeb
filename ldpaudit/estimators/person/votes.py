"""A label guessed from several releases: how noise wears away."""

from collections.abc import Sequence

import numpy as np

from ldpaudit.arrays import FloatArray, IntArray
from ldpaudit.estimators.person.answers import coded_fresh, log_likelihoods

_STEPS = 200
_DIGITS = 9


def estimated_prior(logs: FloatArray) -> FloatArray:
    """Return the labels' frequencies under which answers are likeliest, float64 of shape (k,).

    ``logs``: log P(answers | label), float64 of shape (n, k). Expectation maximisation from equal
    frequencies; no true label is looked at.
    """
    kinds, people = np.unique(np.round(logs, _DIGITS), axis=0, return_counts=True)
    likely = np.exp(kinds - kinds.max(axis=1, keepdims=True))
    prior = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(_STEPS):
        posterior = likely * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = people @ posterior / len(logs)
    return prior


def guesses(channels: Sequence[FloatArray], released: IntArray, prior: FloatArray) -> IntArray:
    """Return the likeliest label of each person given all answers, int32 of shape (n,).

    Parameters
    ----------
    channels : float64 arrays of shape (k, m)
        With noise of its own in each release.
    released : int32 array of shape (n, t)
    prior : float64 array of shape (k,) or (n, k)
        The labels' frequencies, of all people or given each one's features.
    """
    logs = log_likelihoods(channels, released) + np.log(np.maximum(prior, 1e-300))
    return np.asarray(logs.argmax(axis=1).astype(np.int32))


def best_guess(channels: Sequence[FloatArray]) -> float | None:
    """Return how often the best guess of equally likely labels is right: exact.

    None where the product of the channels is too large.
    """
    nobody = np.zeros((0, len(channels)), dtype=np.int32)
    matrix = coded_fresh(channels, nobody).channel
    return None if matrix is None else float(matrix.max(axis=0).sum() / len(matrix))
