"""Laws of integer noise that repeat themselves: discrete Laplace and discrete staircase.

Both give |x| = jn + s (block j, place s < n) the probability e^{−jε} · block[s], up to one factor.
So everything has a closed form in the n weights of a block, and a draw needs only a table of one
block: beyond it the law repeats, and no tail is cut off.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.mechanisms.exact_sampling import BitSource, Randomness, WeightTable, bit_source
from ldpaudit.release import FloatArray

Int64Array = npt.NDArray[np.int64]

_DEEPEST: Final = 1 << 16
_REMAINDER_BITS: Final = 16


@dataclass(frozen=True, eq=False)
class BlockLaw:
    """A symmetric law on the integers with P(X = x) ∝ block[|x| mod n] e^{−ε ⌊|x|/n⌋}.

    Parameters
    ----------
    block : float64 array of shape (n,)
        Positive weights of one block.
    epsilon : float
        The decay from block to block, in nats.
    """

    block: FloatArray
    epsilon: float

    @property
    def size(self) -> int:
        """n, the number of integers in a block."""
        return len(self.block)

    @cached_property
    def _decay(self) -> float:
        return math.exp(-self.epsilon)

    @cached_property
    def _one_sided(self) -> float:
        return float(self.block.sum()) / -math.expm1(-self.epsilon)

    @cached_property
    def _total(self) -> float:
        return 2 * self._one_sided - float(self.block[0])

    @cached_property
    def _suffix(self) -> FloatArray:
        return np.cumsum(self.block[::-1])[::-1]

    def pmf(self, x: Int64Array) -> FloatArray:
        """Return P(X = x)."""
        periods, place = np.divmod(np.abs(x), self.size)
        return np.asarray(self.block[place] * np.exp(-self.epsilon * periods) / self._total)

    def tail(self, x: Int64Array) -> FloatArray:
        """Return P(X ≥ x) for x ≥ 0."""
        periods, place = np.divmod(x, self.size)
        inner = self._suffix[place] + self._decay * self._one_sided
        return np.asarray(inner * np.exp(-self.epsilon * periods) / self._total)

    def mean_absolute(self) -> float:
        """Return E|X|."""
        b, fall, n = self._decay, -math.expm1(-self.epsilon), self.size
        zero, one, _ = self._moments
        return 2 * (n * b / fall**2 * zero + one / fall) / self._total

    def variance(self) -> float:
        """Return Var X = E[X²]."""
        b, fall, n = self._decay, -math.expm1(-self.epsilon), self.size
        zero, one, two = self._moments
        series = n**2 * b * (1 + b) / fall**3 * zero + 2 * n * b / fall**2 * one + two / fall
        return 2 * series / self._total

    @cached_property
    def _moments(self) -> tuple[float, float, float]:
        place = np.arange(self.size, dtype=np.float64)
        block = self.block
        return float(block.sum()), float(place @ block), float(place**2 @ block)

    def draw(self, n: int, rng: Randomness) -> Int64Array:
        """Draw n integers from integer weights, int64 of shape (n,).

        One random word gives the sign and the place within the block, another one the block.
        Zero with a minus sign is drawn anew, since zero has only one sign.
        """
        source = bit_source(rng)
        drawn = self._draw_once(n, source)
        while (again := np.flatnonzero(drawn < 0)).size:
            drawn[again] = self._draw_once(again.size, source)
        return np.where(drawn & 1, -(drawn >> 1), drawn >> 1)

    def _draw_once(self, n: int, source: BitSource) -> Int64Array:
        """Draw 2|x| + (1 where negative), −1 for a minus zero."""
        signed = self._places.draw(np.zeros(n, dtype=np.int32), source).astype(np.int64)
        periods = self._draw_periods(n, source)
        magnitude = periods * self.size + (signed >> 1)
        coded = 2 * magnitude + (signed & 1)
        return np.where(coded == 1, -1, coded)

    def _draw_periods(self, n: int, source: BitSource) -> Int64Array:
        periods = self._periods.draw(np.zeros(n, dtype=np.int32), source).astype(np.int64)
        depth = self._periods.weights.shape[1] - 1
        deeper = np.flatnonzero(periods == depth)
        while deeper.size:  # The geometric law has no memory: beyond the table, draw afresh.
            more = self._periods.draw(np.zeros(deeper.size, dtype=np.int32), source)
            periods[deeper] += more
            deeper = deeper[more == depth]
        return periods

    @cached_property
    def _places(self) -> WeightTable:
        share = np.repeat(self.block / (2 * self.block.sum()), 2)
        return WeightTable.from_probabilities(share[None, :])

    @cached_property
    def _periods(self) -> WeightTable:
        depth = min(math.ceil(_REMAINDER_BITS * math.log(2) / self.epsilon), _DEEPEST)
        share = -math.expm1(-self.epsilon) * np.exp(-self.epsilon * np.arange(depth))
        return WeightTable.from_probabilities(
            np.append(share, math.exp(-self.epsilon * depth))[None]
        )
