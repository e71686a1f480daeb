"""Does noise change along the file? Stretches with other noise, blocks of exact counts, sharpness.

With true labels what noise did to each row is tested; without them, how closely released labels go
with the features.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from scipy.stats import binom, norm

from ldpaudit.estimators.assumptions.clusters import has_pairs
from ldpaudit.estimators.assumptions.noise import (
    LagTest,
    average,
    disjoint_pairs,
    lag_test,
    p_value,
)
from ldpaudit.release import FloatArray, IndexArray, IntArray

# By so much bets on the rest of a block are drawn to the usual share: sizes may be a bit off.
_HALF_A_CHANGE: Final = 0.5
# No bet stakes more than all but this share.
_LEAST: Final = 0.05
# Standard errors by which labels must go with features at all.
_SURELY: Final = 4.0
# Slopes elsewhere times these: honest files stay within, by experience.
_SHARPER, _DULLER = 1.4, 0.5
# Slopes in the clear times this, twice or half as much spread, and half of the slope of all rows.
_STEEPEST, _LIKE, _LEFT = 1.2, 2.0, 0.5


@dataclass(frozen=True)
class Stretch:
    """The rows from ``start`` up to ``stop`` that differ most clearly from what is usual."""

    # ``p_value``: valid for all stretches that were looked at; ``inside``, ``usual``: what was
    # measured there, and what is usual.

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


def stretch_test(outcomes: FloatArray, chances: FloatArray) -> Stretch:
    """Test whether some stretch of rows has other noise than the rest.

    Exact binomial tails, which hold for chances that differ from row to row and for shares counted
    in the same rows (Hoeffding 1956, Theorem 5; Vatutin & Mikhailov 1982), and Bonferroni's
    correction for all windows. A row whose chance is 0 or 1 takes no part.
    """
    used = (chances > 0) & (chances < 1)
    sums = _running_sums(used, used * outcomes, used * chances)
    best, windows = Stretch(), 0
    for starts, stops in _windows(len(outcomes), 32):
        rows, ones, usual = (part.round(9) for part in sums(starts, stops))
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
    """Bet that blocks from the first row on have equally many ones.

    Not as many as their chances add up to: shares by released label hide equal counts where one
    label is rare. Before each row the bet knows the earlier rows of its block, so that wealth is
    fair where noise is drawn for each row. A row whose chance is 0 or 1 takes no part.
    """
    used = (chances > 0) & (chances < 1)
    share = float(chances[used].mean()) if used.any() else 0.5
    chance, one = np.where(used, chances, 0.5), np.where(used, outcomes, 0.5)
    sizes = [
        size for size in (10, 20, 25, 50, 100, 200, 250, 500, 1000) if size * 8 <= len(outcomes)
    ]
    logs = []
    for size in sizes:
        rows = len(outcomes) // size * size
        p, x = (part[:rows].reshape(-1, size) for part in (chance, one))
        takes_part = used[:rows].reshape(-1, size)
        left = np.cumsum((p * takes_part)[:, ::-1], axis=1)[:, ::-1]
        seen = np.cumsum(x * takes_part, axis=1) - x * takes_part
        missing = share * takes_part.sum(axis=1, keepdims=True) - seen
        presumed = p * (missing + _HALF_A_CHANGE) / (left + _HALF_A_CHANGE)
        presumed = np.clip(presumed, _LEAST * p, 1 - _LEAST * (1 - p))
        gain = x * np.log(presumed / p) + (1 - x) * np.log((1 - presumed) / (1 - p))
        logs.append(float(gain[takes_part].sum()))
    if not logs:
        return Blocks()
    return Blocks(p_value(average(logs)), sizes[int(np.argmax(logs))])


def sharpness_test(side: IntArray, expected: FloatArray, ends: tuple[float, float]) -> Stretch:
    """Test whether labels go with features much more, or much less, in some stretch of the file.

    Parameters
    ----------
    side : int32 array of shape (n,)
        Released labels as 0 or 1.
    expected : float64 array of shape (n,)
        The chance of 1 given the features, by a model that did not see the row.
    ends : tuple of float
        The least and the largest chance of 1 that a true label gives under the claim.

    Returns
    -------
    Stretch
        ``inside`` and ``usual`` are slopes of the label in the expectation: within the stretch, and
        in all other rows, times the ratio of the labels' variances. So labels may become more
        frequent along an honest file; they may also go with features up to 1.4
        times as closely as elsewhere, or half as closely. Normal approximation, Bonferroni's
        correction.

    Notes
    -----
    A file that is sorted by its true labels, wholly or within groups, is honest, too, and in such a
    file no slope is that of other rows. Nothing is said of it where a stretch shows the order: by
    labels that are farther from the average than true labels in the clear would be, where its
    features are far from it the same way, or by a slope beyond that of true labels; nor of
    stretches whose features vary less than half, or more than twice, as much as elsewhere, or
    without which hardly anything is left of the slope.
    """
    low, high = ends[0], max(ends[1], ends[0] + 1e-9)
    best, windows = Stretch(), 0
    in_the_clear = np.clip((expected - low) / (high - low), 0, 1)
    parts = side, expected, expected**2, side * expected, in_the_clear
    sums = _running_sums(np.ones(len(side)), *parts)
    every = sums(np.zeros(1, np.int64), np.array([len(side)]))
    overall, error, _ = _slope(every)
    if not overall[0] > _SURELY * error[0]:
        return best
    mean, variance = every[2] / every[0], every[3] / every[0] - (every[2] / every[0]) ** 2
    for starts, stops in _windows(len(side), max(200, len(side) // 32)):
        inside = sums(starts, stops)
        outside = [a - b for a, b in zip(every, inside, strict=True)]
        slope, error, labels_vary = _slope(inside)
        elsewhere, other, rest = _slope(outside)
        rows, ones, foreseen, squares, _, clear = inside
        away = np.sign(foreseen - rows * mean)
        far = np.abs(foreseen - rows * mean) > _SURELY * np.sqrt(rows * variance)
        chance = _SURELY * np.sqrt(np.maximum(foreseen - squares, 1e-9))
        beyond = np.where(far, away * (ones - foreseen), 0.0)
        ordered = beyond > np.maximum(away * (clear - foreseen), 0.0) + chance
        ordered |= slope > _STEEPEST / (high - low) + _SURELY * error
        if (labels_vary == 0).any() or ordered.any():  # Somebody sorted the file by its labels.
            return Stretch()
        usual, other = (x * labels_vary / np.maximum(rest, 1e-9) for x in (elsewhere, other))
        sharp = (slope - _SHARPER * usual) / np.hypot(error, _SHARPER * other)
        dull = (_DULLER * usual - slope) / np.hypot(error, _DULLER * other)
        varies, others_vary = (
            x[3] / np.maximum(x[0], 1) - (x[2] / np.maximum(x[0], 1)) ** 2
            for x in (inside, outside)
        )
        alike = (varies < _LIKE * others_vary) & (others_vary < _LIKE * varies)
        alike &= elsewhere > _LEFT * overall[0]
        z = np.where(alike, np.maximum(sharp, np.where(beyond > chance, 0.0, dull)), 0.0)
        windows, at = windows + len(starts), int(np.argmax(z))
        if (tail := float(norm.sf(z[at]))) < best.p_value:
            slopes = float(slope[at]), float(usual[at])
            best = Stretch(tail, int(starts[at]), int(stops[at]), *slopes)
    return _corrected(best, 2 * windows)


def _slope(sums: list[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return slopes of labels in their expectations, standard errors, and the labels' variances."""
    rows, ones, expected, squares, products, *_ = sums
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
        # Windows of one length begin so many times in each length.
        starts = np.arange(0, n - length + 1, max(length // 4, 1))
        # The last window ends with the file.
        starts = np.unique(np.r_[starts, n - length])
        yield starts, starts + length
        length = length * 3 // 2


def _running_sums(
    *numbers: np.ndarray,
) -> Callable[[IndexArray, IndexArray], list[FloatArray]]:
    """Return a function from starts and stops to the sums of each of several numbers between."""
    totals = [np.concatenate([[0.0], np.cumsum(part)]) for part in numbers]
    return lambda starts, stops: [total[stops] - total[starts] for total in totals]


Test = TypeVar("Test", LagTest, Stretch, Blocks)


def least_clear(
    test: Callable[[FloatArray, FloatArray], Test], outcomes: FloatArray, *chances: FloatArray
) -> Test:
    """Return the test with the largest p-value of several chances, each float64 of shape (n,).

    Where it is not known by which labels the rows were put in order, what any of them explains is
    no shared noise.
    """
    return max((test(outcomes, each) for each in chances), key=lambda found: found.p_value)


_NO_LAGS: Final = LagTest(1.0)


@dataclass(frozen=True)
class OrderTest:
    """What noise shows along the file."""

    lags: LagTest = _NO_LAGS
    stretch: Stretch = Stretch()
    blocks: Blocks = Blocks()

    @classmethod
    def of(cls, outcomes: FloatArray, *chances: FloatArray) -> "OrderTest":
        """Test 0/1 outcomes in the order of their rows, see :func:`least_clear`."""
        return cls(
            least_clear(lag_test, outcomes, *chances),
            least_clear(stretch_test, outcomes, *chances),
            least_clear(block_test, outcomes, *chances),
        )


FEWEST_PAIRS: Final = 30
LAGS, STRETCH, BLOCKS = "lags", "stretch", "blocks"
# Of the error probability; kinds of clusters have the other half.
ORDER_SHARES: Final = {LAGS: 0.25, STRETCH: 0.125, BLOCKS: 0.125}


@dataclass(frozen=True)
class NoiseTest:
    """Whether rows share noise, and which."""

    # ``by_clusters``: the p-value of each kind of cluster, were it the only one; ``shares``: the
    # share of the error probability of each kind, and of each test of the order; ``order``: what
    # noise shows along the file.

    by_clusters: Mapping[str, float]
    shares: Mapping[str, float]
    order: OrderTest

    @property
    def p_value(self) -> float:
        """Valid for all ways to share at once."""
        return min(self.corrected(name) for name in (*ORDER_SHARES, *self.by_clusters))

    def corrected(self, name: str) -> float:
        """Return the p-value of one way to share, valid for all at once."""
        alone = (
            getattr(self.order, name).p_value if name in ORDER_SHARES else self.by_clusters[name]
        )
        return min(1.0, float(alone) / self.shares[name])

    def shared(self, alpha: float) -> list[str]:
        """Return the kinds of clusters that share noise at an error probability for all tests."""
        return [name for name in self.by_clusters if self.corrected(name) <= alpha]


def noise_test(
    bet_on: Callable[[str, IndexArray, IndexArray], float],
    kinds: Mapping[str, IndexArray],
    rng: np.random.Generator,
    order: OrderTest,
    shares: Mapping[str, float],
) -> NoiseTest:
    """Test whether rows of one cluster have noise of their own, with what their order showed.

    Parameters
    ----------
    bet_on : callable
        From a kind and its disjoint pairs to the logarithm of the wealth, see :func:`bet_on_pairs`.
    kinds : mapping from name to int64 array of shape (n,)
        Codes of rows that may share noise, chosen without the released labels.
    order : OrderTest
        Has half of the error probability.
    shares : mapping from name to float
        That of each kind.
    """
    by_clusters = {
        name: p_value(bet_on(name, *disjoint_pairs(codes, rng)))
        for name, codes in kinds.items()
        if has_pairs(codes, FEWEST_PAIRS)
    }
    return NoiseTest(by_clusters, ORDER_SHARES | dict(shares), order)
