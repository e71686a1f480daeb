"""What was released of each person over several releases, as one code, and guesses by it."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.mechanisms.channel import merged_columns

# The most probabilities of a product of channels; a larger one is not written out.
LARGEST: Final = 1 << 20
_DIGITS: Final = 9
# Answers as codes 0 … size − 1, int64 (n,); size; the presumed channel of the codes, (k, size).
Coded = tuple[IndexArray, int, FloatArray | None]


def coded_fresh(channels: Sequence[FloatArray], released: IntArray) -> Coded:
    """Code answers, int32 (n, t), by their likelihoods under fresh noise in channels (k, m).

    Answers with the same likelihood ratios of all labels have one code: of eight releases by binary
    randomized response it is the number of ones. Where the product is too large, the code is the
    likeliest label, and whether all answers name it; its channel is not written out.
    """
    possible = [_possible(channel) for channel in channels]
    matrix, codes = np.ones((len(channels[0]), 1)), np.zeros(len(released), dtype=np.int64)
    for channel, answers in zip(possible, released.T, strict=True):
        k, m = channel.shape
        if k * matrix.shape[1] * m > LARGEST:
            votes = log_likelihoods(possible, released).argmax(axis=1)
            named = [c.argmax(axis=0)[a] for c, a in zip(possible, released.T, strict=True)]
            unanimous = (np.stack(named, 1) == votes[:, None]).all(axis=1)
            return (2 * votes + unanimous).astype(np.int64), 2 * k, None
        matrix, group = merged_columns((matrix[:, :, None] * channel[:, None, :]).reshape(k, -1))
        codes = group[codes * m + answers]
    return codes, matrix.shape[1], matrix / matrix.sum(axis=1, keepdims=True)


def coded_remembered(channel: FloatArray, released: IntArray) -> Coded:
    """Code answers by the one that was remembered; those that differ have a code of their own."""
    k, m = channel.shape
    same = (released == released[:, :1]).all(axis=1)
    codes = np.where(same, released[:, 0], m).astype(np.int64)
    return codes, m + 1, _possible(np.hstack([channel, np.zeros((k, 1))]))


def log_likelihoods(channels: Sequence[FloatArray], released: IntArray) -> FloatArray:
    """Return log P(answers | label) under fresh noise, float64 of shape (n, k)."""
    total = np.zeros((len(released), len(channels[0])))
    for channel, answers in zip(channels, released.T, strict=True):
        total += np.log(_possible(channel)).T[answers]
    return total


def estimated_prior(logs: FloatArray) -> FloatArray:
    """Return the labels' frequencies (k,) under which answers, by log P (n, k), are likeliest.

    Expectation maximisation from equal frequencies; no true label is looked at.
    """
    kinds, people = np.unique(np.round(logs, _DIGITS), axis=0, return_counts=True)
    likely = np.exp(kinds - kinds.max(axis=1, keepdims=True))
    prior = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(200):
        posterior = likely * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = people @ posterior / len(logs)
    return prior


def guesses(channels: Sequence[FloatArray], released: IntArray, prior: FloatArray) -> IntArray:
    """Return each person's likeliest label, int32 (n,); ``prior``: of all (k,) or each (n, k)."""
    logs = np.log(np.maximum(prior, 1e-300))
    if channels:
        logs = logs + log_likelihoods(channels, released)
    return np.asarray(
        np.broadcast_to(logs, (len(released), logs.shape[-1])).argmax(axis=1), np.int32
    )


def best_guess(channels: Sequence[FloatArray]) -> float | None:
    """Return how often the best guess of equally likely labels is right; None if too large."""
    *_, matrix = coded_fresh(channels, np.zeros((0, len(channels)), dtype=np.int32))
    return None if matrix is None else float(matrix.max(axis=0).sum() / len(matrix))


def _possible(channel: FloatArray) -> FloatArray:
    # What is claimed to be impossible counts as this unlikely.
    lifted = np.maximum(channel, 1e-9)
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))
