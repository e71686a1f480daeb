"""A law of whole numbers in blocks of a geometric one, drawn exactly."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.mechanisms.exact_sampling import Randomness, WeightTable, bit_source
from ldpaudit.release import FloatArray

Int64Array = npt.NDArray[np.int64]
_DEEPEST: Final = 1 << 16
_REMAINDER_BITS: Final = 16


@dataclass(frozen=True, eq=False)
class BlockLaw:
    """A symmetric law on the integers with P(X = x) ∝ block[|x| mod n] e^{−ε ⌊|x|/n⌋}."""

    block: FloatArray
    """Float64 array of shape (n,): positive weights of one block."""
    epsilon: float
    """The decay from block to block, in nats."""

    @cached_property
    def _sums(self) -> tuple[FloatArray, float, float]:
        """The sums of a block's weights from each place on, those of all x ≥ 0, and of all x."""
        from_here = np.cumsum(self.block[::-1])[::-1]
        one_sided = float(self.block.sum()) / -math.expm1(-self.epsilon)
        return from_here, one_sided, 2 * one_sided - float(self.block[0])

    def pmf(self, x: Int64Array) -> FloatArray:
        """Return P(X = x)."""
        periods, place = np.divmod(np.abs(x), len(self.block))
        return np.asarray(self.block[place] * np.exp(-self.epsilon * periods) / self._sums[2])

    def tail(self, x: Int64Array) -> FloatArray:
        """Return P(X ≥ x) for x ≥ 0."""
        (periods, place), (from_here, one_sided, total) = np.divmod(x, len(self.block)), self._sums
        inner = from_here[place] + math.exp(-self.epsilon) * one_sided
        return np.asarray(inner * np.exp(-self.epsilon * periods) / total)

    def up_to(self, x: Int64Array) -> FloatArray:
        """Return P(X ≤ x)."""
        low = self.tail(np.maximum(-x, 0))
        return np.where(x < 0, low, 1 - self.tail(np.maximum(x + 1, 0)))

    def mean_absolute(self) -> float:
        """Return E|X|."""
        b, fall, n = math.exp(-self.epsilon), -math.expm1(-self.epsilon), len(self.block)
        zero, one, _ = self._moments
        return 2 * (n * b / fall**2 * zero + one / fall) / self._sums[2]

    def variance(self) -> float:
        """Return Var X = E[X²]."""
        b, fall, n = math.exp(-self.epsilon), -math.expm1(-self.epsilon), len(self.block)
        zero, one, two = self._moments
        series = n**2 * b * (1 + b) / fall**3 * zero + 2 * n * b / fall**2 * one + two / fall
        return 2 * series / self._sums[2]

    @cached_property
    def _moments(self) -> tuple[float, float, float]:
        place = np.arange(len(self.block), dtype=np.float64)
        return float(self.block.sum()), float(place @ self.block), float(place**2 @ self.block)

    def draw(self, n: int, rng: Randomness) -> Int64Array:
        """Draw n integers from integer weights, int64 of shape (n,)."""
        # One random word gives the sign and the place within the block, another one the block. A
        # zero with a minus sign is drawn again, since zero has only one sign.
        source, (places, periods) = bit_source(rng), self._tables
        drawn, missing = np.empty(n, dtype=np.int64), np.arange(n)
        while missing.size:
            one_row = np.zeros(missing.size, dtype=np.int32)
            signed = places.draw(one_row, source).astype(np.int64)
            block = periods.draw(one_row, source).astype(np.int64)
            depth = periods.weights.shape[1] - 1
            deeper = np.flatnonzero(block == depth)
            while deeper.size:  # The geometric law has no memory: beyond the table, draw on.
                more = periods.draw(np.zeros(deeper.size, dtype=np.int32), source)
                block[deeper] += more
                deeper = deeper[more == depth]
            magnitude = block * len(self.block) + (signed >> 1)
            drawn[missing] = np.where(signed & 1, -magnitude, magnitude)
            missing = missing[(signed & 1 == 1) & (magnitude == 0)]
        return drawn

    @cached_property
    def _tables(self) -> tuple[WeightTable, WeightTable]:
        """The law of sign and place in a block, and that of the block."""
        share = np.repeat(self.block / (2 * self.block.sum()), 2)
        depth = min(math.ceil(_REMAINDER_BITS * math.log(2) / self.epsilon), _DEEPEST)
        blocks = -math.expm1(-self.epsilon) * np.exp(-self.epsilon * np.arange(depth))
        blocks = np.append(blocks, math.exp(-self.epsilon * depth))
        return WeightTable.from_probabilities(share[None]), WeightTable.from_probabilities(
            blocks[None]
        )
