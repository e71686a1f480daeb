"""What noise did to rows, and bets on it whose gain is a valid p-value.

In: outcomes, 0 or 1 a row, and the stratum of each row's true label.
Out: the log wealth of a bet, and its p-value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ldpaudit.arrays import stable_order
from ldpaudit.release import FloatArray, IndexArray

# How far a bet follows a guess, as a correlation.
_STAKES: Final = (0.015, 0.04, 0.1, 0.25, 0.6, 1.6)
_LARGEST_TILT: Final = 6.0


def average(log_wealths: Sequence[float] | FloatArray) -> float:
    """Return the logarithm of the mean of several wealths."""
    logs = np.asarray(log_wealths, dtype=np.float64)
    return float(np.logaddexp.reduce(logs) - np.log(len(logs))) if len(logs) else 0.0


def p_value(log_wealth: float, tried: float = 1.0) -> float:
    """Return the valid p-value of a bet that was chosen among ``tried``, at most 1."""
    return float(min(1.0, tried * math.exp(-max(log_wealth, 0.0))))


@dataclass(frozen=True, eq=False)
class RowNoise:
    """What noise did to rows, in some order.

    Attributes
    ----------
    ones : float64 array of shape (n,)
        1 where noise changed the label (or raised it, or put it on one side), else 0.
    strata : int64 array of shape (n,)
        Codes from 0 of the rows among which outcomes are in any order if noise is white.
    chances : float64 array of shape (n,) or None
        The chance of 1 as a model says it; None: the share of ones in the stratum.
    claimed : float64 array of shape (n,) or None
        The chance of 1 under the claim: to what counts are held that may be too equal.
    labels : int64 array of shape (n,) or None
        Where given, a row is guessed only from rows with another label.
    """

    ones: FloatArray
    strata: IndexArray
    chances: FloatArray | None = None
    claimed: FloatArray | None = None
    labels: IndexArray | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.ones)

    def take(self, rows: IndexArray) -> "RowNoise":
        """Return the outcomes of some rows, in that order."""
        for before, taken in self._last:
            if before is rows:
                return taken
        # Most groupings are bet on in one order of all rows, or of a sample of them.
        self._last[:] = [(rows, self._taken(rows)), *self._last[:1]]
        return self._last[0][1]

    @cached_property
    def _last(self) -> list[tuple[IndexArray, "RowNoise"]]:
        return []

    def _taken(self, rows: IndexArray) -> "RowNoise":
        return RowNoise(
            self.ones[rows],
            self.strata[rows],
            None if self.chances is None else self.chances[rows],
            None if self.claimed is None else self.claimed[rows],
            None if self.labels is None else self.labels[rows],
        )

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation of each row's outcome, float64 (n,)."""
        return np.sqrt(np.maximum(self._usual * (1 - self._usual), 0.0))

    @cached_property
    def residual(self) -> FloatArray:
        """RowNoise less what is usual, in standard deviations; 0 where noise has no choice."""
        open_ = self.spread > 1e-6
        return np.where(open_, (self.ones - self._usual) / np.where(open_, self.spread, 1.0), 0.0)

    @cached_property
    def _usual(self) -> FloatArray:
        if self.chances is not None:
            return self.chances
        sizes = np.maximum(np.bincount(self.strata), 1)
        return np.asarray((np.bincount(self.strata, self.ones) / sizes)[self.strata])

    @cached_property
    def _fair(self) -> FloatArray:
        """The share of ones among the rows of each row's stratum from that row on."""
        if self.chances is not None:
            return self.chances
        order = stable_order(self.strata)
        sizes = np.bincount(self.strata)
        ends = np.repeat(np.cumsum(sizes), sizes)
        totals = np.concatenate([[0.0], np.cumsum(self.ones[order])])
        fair = np.empty(len(order))
        fair[order] = (totals[ends] - totals[:-1]) / (ends - np.arange(len(order)))
        return fair

    @cached_property
    def entropy(self) -> float:
        """The entropy of all outcomes, in nats: what a bet could gain at most, about."""
        p = np.clip(self._usual, 1e-12, 1 - 1e-12)
        return float(-(p * np.log(p) + (1 - p) * np.log1p(-p)).sum())

    @property
    def offset(self) -> FloatArray:
        """By how much what is usual lies above what the claim expects of each outcome."""
        if self.claimed is None:
            return np.zeros(len(self))
        return np.where(self.spread > 1e-6, self._usual - self.claimed, 0.0)

    def bet(self, guesses: FloatArray) -> float:
        """Bet on each row in turn; the logarithm of the wealth at the end.

        ``guesses``, float64 (n,): of each residual, made of the rows before it; 0 is no bet.
        """
        used = (guesses != 0) & (self._fair > 0) & (self._fair < 1) & (self.spread > 1e-6)
        chance, ones = self._fair[used], self.ones[used]
        tilt_of_one = guesses[used] / self.spread[used]
        logs = []
        for stake in _STAKES:
            tilt = np.clip(stake * tilt_of_one, -_LARGEST_TILT, _LARGEST_TILT)
            logs.append(float((ones * tilt - np.log1p(chance * np.expm1(tilt))).sum()))
        return average(logs)
