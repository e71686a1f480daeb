"""Whether the noise on features can have been drawn as it is claimed: Gaussian, anew for each row.

How much noise there is says nothing of what it is. Values that the noise left exactly as they were,
noise of few values or shared by rows, noise of another shape, and noise that goes with the label
can all have the declared variance.

Features may be rounded or clipped after the noise, which reveals nothing more. So every test allows
for the distance of neighbouring released values, and those of shape and label look at no column
in which several rows have the largest or the smallest value.
"""

import numpy as np
from scipy.stats import binom, f_oneway, kstest, poisson

from ldpaudit.doors import FloatArray, IntArray

_PRECISION = 2.0**-21
"""The distance of two numbers of single precision that are the same, as a share of their size."""
_DENSITY = 1 / np.sqrt(2 * np.pi)
_DISTINCT = 0.9
"""The share of different values of a column that is not coarsely rounded."""
_SMALLEST_CLASS = 20


def unchanged(true: FloatArray, noisy: FloatArray, sigma: float) -> float:
    """Return the p-value of so many values being exactly the true ones, for (n, p) features.

    Noise of density at most 1/(σ√2π) leaves a value where it was with a probability of at most that
    density times the distance to the next other released value, whatever it was rounded to. The
    extremes may be clipped, and count for nothing.
    """
    found = [_unchanged(true[:, j], noisy[:, j], sigma / _DENSITY) for j in range(true.shape[1])]
    return min(1.0, len(found) * min(found))


def _unchanged(true: FloatArray, noisy: FloatArray, reach: float) -> float:
    slack = _PRECISION * np.maximum(np.abs(true), np.abs(noisy))
    values = np.unique(noisy)
    places = np.searchsorted(values, noisy)
    gaps = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    widest = np.maximum(gaps[places], gaps[places + 1])
    inner = np.isfinite(widest)
    same = int((np.abs(noisy - true) <= slack)[inner].sum())
    mean = float(np.minimum(1.0, (widest + 2 * slack)[inner] / reach).sum())
    # Beyond its mean + 1 a sum of unlike trials has a lighter tail than a Poisson law (Hoeffding).
    return float(poisson.sf(same - 1, mean)) if same > mean + 1 else 1.0


def repeated(noise: FloatArray, noisy: FloatArray, sigma: float) -> float:
    """Return the p-value of so many rows having the noise of another row, in some column.

    A row's noise is that of another by chance no more often than released values are, times the
    ratio of their spreads; four times that, and one row in a hundred, are allowed.
    """
    found = [_repeated(noise[:, j], noisy[:, j], sigma) for j in range(noise.shape[1])]
    return min(1.0, len(found) * min(found))


def _repeated(noise: FloatArray, noisy: FloatArray, sigma: float) -> float:
    n = len(noise)
    slack = _PRECISION * max(float(np.abs(noisy).max()), float(np.abs(noise).max()), 1e-300)
    spread = max(float(noisy.std()), 1e-300) / max(float(noise.std()), 1e-300)
    values = 1 - len(np.unique(noisy)) / n
    near = min(1.0, 2 * n * slack * _DENSITY / sigma)
    allowed = min(1.0, 4 * values * max(spread, 1.0) + near + 0.01)
    _, counts = np.unique(np.rint(noise / slack), return_counts=True)
    return float(binom.sf(int(counts[counts > 1].sum()) - 1, n, allowed))


def another_shape(noise: FloatArray, noisy: FloatArray) -> float:
    """Return the p-value of noise of mean 0 being Gaussian, whatever its variance.

    With the variance of the sample the test of Kolmogorov and Smirnov refutes too rarely.
    """
    found = [
        float(kstest(column / np.sqrt(np.mean(column**2)), "norm").pvalue)
        for column in _as_drawn(noise, noisy)
    ]
    return min(1.0, len(found) * min(found)) if found else 1.0


def goes_with(noise: FloatArray, noisy: FloatArray, labels: IntArray) -> float:
    """Return the p-value of the noise having the same mean in all labels, (n,) codes: F-tests."""
    classes, counts = np.unique(labels, return_counts=True)
    large = classes[counts >= _SMALLEST_CLASS]
    columns = _as_drawn(noise, noisy)
    if len(large) < 2 or not columns:
        return 1.0
    found = [
        float(f_oneway(*(column[labels == one] for one in large)).pvalue) for column in columns
    ]
    return min(1.0, len(found) * min(found))


def _as_drawn(noise: FloatArray, noisy: FloatArray) -> list[FloatArray]:
    """Return the noise of columns that were neither clipped nor coarsely rounded after it."""
    kept = []
    for own, released in zip(noise.T, noisy.T, strict=True):
        ends = [int((released == end).sum()) for end in (released.min(), released.max())]
        distinct = len(np.unique(released)) / len(released)
        if max(ends) == 1 and distinct >= _DISTINCT and own.any():
            kept.append(own)
    return kept
