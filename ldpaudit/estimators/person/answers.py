"""What was released of each person over several releases, as one code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.mechanisms.composition import merged_columns

LARGEST: Final = 1 << 20
"""The most probabilities of a product of channels; a larger one is not written out."""
_POSSIBLE: Final = 1e-9
"""What is claimed to be impossible counts as this unlikely."""


@dataclass(frozen=True, eq=False)
class Coded:
    """The answers of n people as codes that hold what they tell, and their presumed channel.

    Attributes
    ----------
    codes : int64 array of shape (n,)
    size : int
        Codes are 0 … size − 1.
    channel : float64 array of shape (k, size) or None
        The probability of each code given the true label; None where it is not written out.
    """

    codes: IndexArray
    size: int
    channel: FloatArray | None


def coded_fresh(channels: Sequence[FloatArray], released: IntArray) -> Coded:
    """Code answers by their likelihoods under fresh noise.

    Answers with the same likelihood ratios of all labels have one code: of eight releases by binary
    randomized response it is the number of ones. Where the product is too large, the code is the
    likeliest label, and whether all answers name it.

    Parameters
    ----------
    channels : float64 arrays of shape (k, m)
        The presumed channel of each release.
    released : int32 array of shape (n, t)
        Codes of the released labels, release by release.
    """
    possible = [_possible(channel) for channel in channels]
    matrix, codes = np.ones((len(channels[0]), 1)), np.zeros(len(released), dtype=np.int64)
    for channel, answers in zip(possible, released.T, strict=True):
        k, m = channel.shape
        if k * matrix.shape[1] * m > LARGEST:
            return _coded_vote(possible, released)
        product = (matrix[:, :, None] * channel[:, None, :]).reshape(k, -1)
        matrix, group = merged_columns(product)
        codes = group[codes * m + answers]
    return Coded(codes, matrix.shape[1], matrix / matrix.sum(axis=1, keepdims=True))


def coded_remembered(channel: FloatArray, released: IntArray) -> Coded:
    """Code answers by the one that was remembered; those that differ have a code of their own.

    Parameters
    ----------
    channel : float64 array of shape (k, m)
        The presumed channel of the remembered answer.
    released : int32 array of shape (n, t)
    """
    k, m = channel.shape
    same = (released == released[:, :1]).all(axis=1)
    codes = np.where(same, released[:, 0], m).astype(np.int64)
    return Coded(codes, m + 1, _possible(np.hstack([channel, np.zeros((k, 1))])))


def log_likelihoods(channels: Sequence[FloatArray], released: IntArray) -> FloatArray:
    """Return log P(answers | label) under fresh noise, float64 of shape (n, k)."""
    total = np.zeros((len(released), len(channels[0])))
    for channel, answers in zip(channels, released.T, strict=True):
        total += np.log(_possible(channel)).T[answers]
    return total


def _coded_vote(channels: Sequence[FloatArray], released: IntArray) -> Coded:
    votes = log_likelihoods(channels, released).argmax(axis=1)
    named = np.stack([c.argmax(axis=0)[a] for c, a in zip(channels, released.T, strict=True)], 1)
    unanimous = (named == votes[:, None]).all(axis=1)
    return Coded((2 * votes + unanimous).astype(np.int64), 2 * len(channels[0]), None)


def _possible(channel: FloatArray) -> FloatArray:
    lifted = np.maximum(channel, _POSSIBLE)
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))
