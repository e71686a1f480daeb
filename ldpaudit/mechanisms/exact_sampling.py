"""Draws from finite distributions with integer probabilities, free of hidden rounding."""

# A floating-point uniform number has 53 bits and gaps; comparing it with a probability releases
# labels with odds other than declared (Mironov 2012). Here every probability is a multiple of 2⁻⁶³
# or 2⁻⁶⁴, compared with a whole random word, and within 2⁻⁶⁰ of the declared one.

import math
import os
from collections.abc import Sized
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, IndexArray, IntArray

WordArray = npt.NDArray[np.uint64]

# The integer weights of a :class:`WeightTable` sum to this in each row.
TOTAL: Final = 1 << 63

_BLOCK: Final = 1 << 16
_MAXIMAL_CELLS: Final = 1 << 25
# Rarer outcomes of a :class:`WeightTable`, in units of 2⁻⁶³, are rounded up.
_RARE: Final = 1 << 40

# Above it outputs have probabilities below 2⁻⁵⁷, too small for a table of 64-bit integers.
LARGEST_EPSILON: Final = 40.0


class BitSource(Protocol):
    """A source of independent random 64-bit words."""

    def words(self, n: int) -> WordArray:
        """Return ``n`` independent uniform words, uint64 of shape (n,)."""


@dataclass(frozen=True)
class SystemEntropy:
    """The operating system's generator: for a real release."""

    def words(self, n: int) -> WordArray:
        """Return ``n`` words of ``os.urandom``."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


@dataclass(frozen=True)
class GeneratorBits:
    """A NumPy generator: repeatable, for simulations only."""

    generator: np.random.Generator

    def words(self, n: int) -> WordArray:
        """Return ``n`` words of the generator."""
        last = np.iinfo(np.uint64).max
        return self.generator.integers(0, last, size=n, dtype=np.uint64, endpoint=True)


# The source of draws: None for the operating system; a NumPy generator for simulations only.
Randomness = np.random.Generator | BitSource | None


def bit_source(rng: Randomness) -> BitSource:
    """Return the source of words for ``rng``."""
    if rng is None:
        return SystemEntropy()
    return GeneratorBits(rng) if isinstance(rng, np.random.Generator) else rng


def uniform_below(bound: int, n: int, source: BitSource) -> WordArray:
    """Draw integers, each exactly uniform on 0 … ``bound`` − 1."""
    last = np.uint64((1 << 64) // bound * bound - 1)
    words = source.words(n)
    while (beyond := np.flatnonzero(words > last)).size:
        words = words.copy()
        words[beyond] = source.words(beyond.size)
    return words % np.uint64(bound)


def below(chance: float, rows: Sized, source: BitSource) -> IndexArray:
    """Return the positions of rows drawn with a probability each, rounded up to a 2⁻⁶⁴."""
    threshold = math.ceil(Fraction(chance) * (1 << 64))
    if not threshold:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(source.words(len(rows)) <= np.uint64(threshold - 1))


def randomized_response(labels: IntArray, noise: float, k: int, rng: Randomness) -> IntArray:
    """Keep each code with probability 1 − λ, else draw one of all k uniformly."""
    # λ is rounded up to a multiple of 2⁻⁶⁴, towards privacy, and the uniform draw is exact, so no
    # probability is off by more than 2⁻⁶⁴ and ε is never above the declared one. One random word
    # serves both decisions: below the threshold it is itself uniform.
    source, out = bit_source(rng), np.array(labels, dtype=np.int32)
    threshold = math.ceil(Fraction(noise) * (1 << 64))
    if threshold == 0:
        return out
    for start in range(0, len(out), _BLOCK):
        block = out[start : start + _BLOCK]
        words = source.words(len(block))
        rows = np.flatnonzero(words <= np.uint64(threshold - 1))
        # Words uniform below the threshold become exactly uniform integers below k.
        whole, drawn = threshold // k * k, words[rows] % np.uint64(k)
        if whole < threshold:
            beyond = np.flatnonzero(words[rows] >= np.uint64(whole))
            drawn[beyond] = uniform_below(k, len(beyond), source)
        block[rows] = drawn
    return out


def integer_weights(probabilities: FloatArray) -> WordArray:
    """Turn rows of probabilities into integers that sum to exactly 2⁶³, no possible one to 0."""
    rows = np.ascontiguousarray(probabilities, dtype=np.float64)
    scaled = np.ldexp(rows, 63)
    weights = scaled.astype(np.uint64)
    fraction = scaled - np.floor(scaled)
    # The sums wrap modulo 2⁶⁴, and 2⁶³ minus a sum is small: the difference is exact.
    missing = (np.uint64(TOTAL) - weights.sum(axis=1, dtype=np.uint64)).view(np.int64)
    excess = (missing - fraction.sum(axis=1)) / rows.sum(axis=1)
    share = np.floor(fraction + rows * excess[:, None]).astype(np.int64)
    weights += share.view(np.uint64)  # Two's complement: adding a negative number subtracts.
    # What is left of each row, fewer units than outcomes, goes to the largest weights, one each.
    rest = missing - share.sum(axis=1)
    order = np.argsort(-rows, axis=1, kind="stable")
    ordered = np.take_along_axis(weights, order, axis=1)
    ordered += (np.arange(rows.shape[1]) < rest[:, None]).astype(np.uint64)
    np.put_along_axis(weights, order, ordered, axis=1)
    # What is rare for one label tells it from others the more the rarer it is, and surely where it
    # is rounded away: it is rounded up, towards privacy.
    row, column = np.nonzero((weights < _RARE) & (rows > 0))
    more = np.maximum(np.ceil(scaled[row, column]).astype(np.uint64), weights[row, column])
    np.subtract.at(weights, (row, order[row, 0]), more - weights[row, column])
    weights[row, column] = more
    return weights


@dataclass(frozen=True, eq=False)
class WeightTable:
    """k distributions over m outcomes as integer weights."""

    weights: WordArray

    def __post_init__(self) -> None:
        if self.weights.size > _MAXIMAL_CELLS:
            raise InputError(
                f"A table of {self.weights.shape[0]} × {self.weights.shape[1]} probabilities is "
                f"too large to draw from; use fewer labels or a larger step between them."
            )

    @classmethod
    def from_probabilities(cls, probabilities: FloatArray) -> "WeightTable":
        """Build it from float64 rows of shape (k, m) that each sum to 1."""
        return cls(integer_weights(probabilities))

    @cached_property
    def cumulative(self) -> WordArray:
        """Cumulative weights, uint64 of shape (k, m); the last column is 2⁶³."""
        return np.cumsum(self.weights, axis=1, dtype=np.uint64)

    def draw(self, rows: IntArray, rng: Randomness) -> IntArray:
        """Draw one outcome for each entry of ``rows``."""
        source, out = bit_source(rng), np.empty(len(rows), dtype=np.int32)
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            words = source.words(len(block)) >> np.uint64(1)
            order = np.argsort(block, kind="stable")
            distinct, first = np.unique(block[order], return_index=True)
            for row, places in zip(distinct, np.split(order, first[1:]), strict=True):
                drawn = np.searchsorted(self.cumulative[row], words[places], side="right")
                out[start + places] = drawn
        return out
