"""What released labels alone show of noise: rows that agree too often, a stretch that is unlike."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom, norm

from ldpaudit.release import FloatArray, IndexArray, IntArray

# Standard errors by which labels must go with features at all.
_SURELY: Final = 4.0
# Slopes elsewhere times these: honest files stay within, by experience.
_SHARPER, _DULLER = 1.4, 0.5
# Slopes in the clear times this, twice or half as much spread, and half of the slope of all rows.
_STEEPEST, _LIKE, _LEFT = 1.2, 2.0, 0.5


def largest_agreement(one: FloatArray, two: FloatArray) -> float:
    """Return the largest chance that fresh answers of any two labels agree."""
    return float((one @ two.T).max())


def agreement_p_value(
    labels: IntArray, first: IndexArray, second: IndexArray, most: float
) -> float:
    """Return the p-value of "independent noise, and agreement has a chance of at most ``most``".

    ``labels``: int32 of shape (n,); disjoint pairs of rows. Exact binomial tail (Hoeffding 1956 for
    chances that differ).
    """
    agreeing = int(np.sum(labels[first] == labels[second]))
    return float(binom.sf(agreeing - 1, len(first), most)) if len(first) else 1.0


@dataclass(frozen=True)
class Stretch:
    """The rows from ``start`` up to ``stop`` that differ most clearly from what is usual."""

    p_value: float = 1.0
    """Valid for all stretches that were looked at."""
    start: int = 0
    stop: int = 0
    inside: float = 0.0
    usual: float = 0.0
    """``inside`` and ``usual``: what was measured there, and what is usual."""


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
