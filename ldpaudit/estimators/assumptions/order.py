"""Noise along the file: rows at a distance, a stretch unlike the others, blocks of equal counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom, norm

from ldpaudit.estimators.assumptions.bets import average, p_value
from ldpaudit.estimators.assumptions.lags import LagTest, lag_test
from ldpaudit.release import FloatArray, IndexArray, IntArray

BLOCK_SIZES: Final = (10, 20, 25, 50, 100, 200, 250, 500, 1000)
_FEWEST_BLOCKS: Final = 8
_HALF_A_CHANGE: Final = 0.5
"""By so much bets on the rest of a block are drawn to the usual share: sizes may be a bit off."""
_LEAST: Final = 0.05
"""No bet stakes more than all but this share."""
_SHORTEST: Final = 32
_STEPS: Final = 4
"""Windows of one length begin so many times in each length."""
_PARTS: Final = 32
_FEWEST: Final = 200
_SURELY: Final = 4.0
"""Standard errors by which labels must go with features at all."""
_SHARPER, _DULLER = 1.4, 0.5
"""Slopes elsewhere times these: honest files stay within, by experience."""


@dataclass(frozen=True)
class Stretch:
    """The rows from ``start`` up to ``stop`` that differ most clearly from what is usual.

    Attributes
    ----------
    p_value : float
        Valid for all stretches that were looked at.
    inside, usual : float
        What was measured there, and what is usual.
    """

    p_value: float = 1.0
    start: int = 0
    stop: int = 0
    inside: float = 0.0
    usual: float = 0.0


@dataclass(frozen=True)
class Blocks:
    """Whether blocks of ``size`` rows have nearly the same number of changed labels each."""

    p_value: float = 1.0
    size: int = 0


@dataclass(frozen=True)
class OrderTest:
    """What noise shows along the file."""

    lags: LagTest
    stretch: Stretch = Stretch()
    blocks: Blocks = Blocks()

    @classmethod
    def of(cls, outcomes: FloatArray, chances: FloatArray) -> "OrderTest":
        """Test 0/1 outcomes, with chances of 1, in the order of their rows; float64 (n,)."""
        tests = lag_test(outcomes, chances), stretch_test(outcomes, chances)
        return cls(*tests, block_test(outcomes, chances))

    def least_clear(self, other: "OrderTest") -> "OrderTest":
        """Return of each test the less clear one: either way to explain the order may be right."""
        return OrderTest(
            max(self.lags, other.lags, key=lambda test: test.p_value),
            max(self.stretch, other.stretch, key=lambda test: test.p_value),
            max(self.blocks, other.blocks, key=lambda test: test.p_value),
        )


def stretch_test(outcomes: FloatArray, chances: FloatArray) -> Stretch:
    """Test whether some stretch of rows has other noise than the rest.

    Exact binomial tails, which hold for chances that differ from row to row and for shares counted
    in the same rows (Hoeffding 1956, Theorem 5; Vatutin & Mikhailov 1982), and Bonferroni's
    correction for all windows. A row whose chance is 0 or 1 takes no part.
    """
    used = (chances > 0) & (chances < 1)
    sums = _Sums.of(used, used * outcomes, used * chances)
    best, windows = Stretch(), 0
    for starts, stops in _windows(len(outcomes), _SHORTEST):
        rows, ones, usual = (part.round(9) for part in sums.between(starts, stops))
        share = usual / np.maximum(rows, 1)
        low = np.where(ones <= usual - 1, binom.cdf(ones, rows, share), 1.0)
        high = np.where(ones >= usual + 1, binom.sf(ones - 1, rows, share), 1.0)
        tails, windows = np.minimum(low, high), windows + len(starts)
        at = int(np.argmin(tails))
        if tails[at] < best.p_value:
            found = (float(part[at] / max(rows[at], 1)) for part in (ones, usual))
            best = Stretch(float(tails[at]), int(starts[at]), int(stops[at]), *found)
    return _corrected(best, 2 * windows)


def block_test(outcomes: FloatArray, chances: FloatArray) -> Blocks:
    """Bet that blocks from the first row on have as many ones each as their chances add up to.

    Before each row the bet knows the earlier rows of its block, so that wealth is fair where noise
    is drawn for each row. A row whose chance is 0 or 1 takes no part.
    """
    used = (chances > 0) & (chances < 1)
    chance, one = np.where(used, chances, 0.5), np.where(used, outcomes, 0.5)
    sizes = [size for size in BLOCK_SIZES if size * _FEWEST_BLOCKS <= len(outcomes)]
    logs = []
    for size in sizes:
        rows = len(outcomes) // size * size
        p, x = (part[:rows].reshape(-1, size) for part in (chance, one))
        left = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
        ahead = np.cumsum(x - p, axis=1) - (x - p)
        presumed = p * (left - ahead + _HALF_A_CHANGE) / (left + _HALF_A_CHANGE)
        presumed = np.clip(presumed, _LEAST * p, 1 - _LEAST * (1 - p))
        gain = x * np.log(presumed / p) + (1 - x) * np.log((1 - presumed) / (1 - p))
        logs.append(float(gain[used[:rows].reshape(-1, size)].sum()))
    if not logs:
        return Blocks()
    return Blocks(p_value(average(logs)), sizes[int(np.argmax(logs))])


def sharpness_test(side: IntArray, expected: FloatArray) -> Stretch:
    """Test whether labels go with features much more, or much less, in some stretch of the file.

    Parameters
    ----------
    side : int32 array of shape (n,)
        Released labels as 0 or 1.
    expected : float64 array of shape (n,)
        The chance of 1 given the features, by a model that did not see the row.

    Returns
    -------
    Stretch
        ``inside`` and ``usual`` are slopes of the label in the expectation: within the stretch, and
        in all other rows, times the ratio of the labels' variances. So labels may become more
        frequent along an honest file; they may also go with features up to 1.4
        times as closely as elsewhere, or half as closely. Normal approximation, Bonferroni's
        correction.
    """
    best, windows = Stretch(), 0
    sums = _Sums.of(np.ones(len(side)), side, expected, expected**2, side * expected)
    every = sums.between(np.zeros(1, np.int64), np.array([len(side)]))
    slope, error, _ = _slope(every)
    if not slope[0] > _SURELY * error[0]:
        return best
    for starts, stops in _windows(len(side), max(_FEWEST, len(side) // _PARTS)):
        inside = sums.between(starts, stops)
        slope, error, variance = _slope(inside)
        usual, other, rest = _slope([a - b for a, b in zip(every, inside, strict=True)])
        usual, other = (part * variance / np.maximum(rest, 1e-9) for part in (usual, other))
        z = np.maximum(
            (slope - _SHARPER * usual) / np.hypot(error, _SHARPER * other),
            (_DULLER * usual - slope) / np.hypot(error, _DULLER * other),
        )
        if (variance == 0).any():  # Somebody sorted the file by its released labels.
            return Stretch()
        z, windows = np.where(usual > 0, z, 0.0), windows + len(starts)
        at = int(np.argmax(z))
        if (tail := float(norm.sf(z[at]))) < best.p_value:
            slopes = float(slope[at]), float(usual[at])
            best = Stretch(tail, int(starts[at]), int(stops[at]), *slopes)
    return _corrected(best, 2 * windows)


def _slope(sums: list[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return slopes of labels in their expectations, standard errors, and the labels' variances."""
    rows, ones, expected, squares, products = sums
    n = np.maximum(rows, 1)
    spread = np.maximum(squares - expected**2 / n, 1e-9)
    variance = ones / n * (1 - ones / n)
    slope = (products - ones * expected / n) / spread
    return slope, np.sqrt(np.maximum(variance, 1e-9) / spread), variance


def _corrected(best: Stretch, tests: int) -> Stretch:
    p = min(1.0, max(tests, 1) * best.p_value)
    return Stretch(p, best.start, best.stop, best.inside, best.usual) if p < 1 else Stretch()


def _windows(n: int, shortest: int) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield where windows start and stop, each length half again as long, up to half the file."""
    length = shortest
    while 2 * length <= n:
        starts = np.arange(0, n - length + 1, max(length // _STEPS, 1))
        # The last window ends with the file.
        starts = np.unique(np.r_[starts, n - length])
        yield starts, starts + length
        length = length * 3 // 2


@dataclass(frozen=True, eq=False)
class _Sums:
    """Running sums of several numbers of each row."""

    totals: tuple[FloatArray, ...]

    @classmethod
    def of(cls, *numbers: np.ndarray) -> "_Sums":
        return cls(tuple(np.concatenate([[0.0], np.cumsum(part)]) for part in numbers))

    def between(self, starts: IndexArray, stops: IndexArray) -> list[FloatArray]:
        """Return the sums from each start up to each stop."""
        return [total[stops] - total[starts] for total in self.totals]
