"""Does a release have more or less noise than claimed? One exact test of all rows together."""

# A channel with less or more noise of the same kind has rows proportional to T[y, z]^s, s above or
# below 1. These form an exponential family whose statistic is the sum of log T[y, z] over the rows,
# so tests by its tails are uniformly most powerful against less, or more, noise. For randomized
# response the statistic counts the labels that were released unchanged.

import math
from typing import Final

import numpy as np
from scipy.optimize import brentq

from ldpaudit.estimators.epsilon.bounds import CountTable, class_counts
from ldpaudit.release import FloatArray, IndexArray

_ROUNDING: Final = 1e-9  # A declared matrix has finitely many digits.
# Scores are whole numbers up to the first, or, where the sums would take too long, the second.
_SCORES, _FEW_SCORES, _MOST_WORK = 16, 2, 50_000
_DEEPEST: Final = 8.0  # Outputs e^8 times as unlikely as the likeliest one have the same score.
_STEEPEST: Final = 60.0
_WINDOW: Final = 20  # The tail beyond so many standard deviations is below 1e-12 of the whole.
_DIGITS: Final = 1e-6  # The relative error of a tail, by which it is enlarged.


def noise_p_value(counts: CountTable, channel: FloatArray) -> float:
    """Test a claimed channel against the channels with less or more noise of the same kind.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        Rows by true label and output.
    channel : float64 array of shape (k, m)
        The claim.

    Returns
    -------
    float
        A two-sided p-value, twice the smaller tail of the summed scores of all rows; a score is
        log T[y, z] rounded to at most 16 steps. Under the claim it is at most α with probability at
        most α, for every number of rows.

    References
    ----------
    Lehmann & Romano (2005), "Testing Statistical Hypotheses", Corollary 3.4.1: most powerful tests
    in exponential families. Esscher (1932): the tilted law, by which tails keep their digits.
    """
    sizes = class_counts(counts)
    present = sizes > 0
    table, sizes, claim = np.asarray(counts)[present], sizes[present], channel[present]
    scores = _scores(claim, int(sizes.sum()))
    best = int(scores.max(initial=0))
    if best == 0:
        return 1.0
    laws = np.array(
        [np.bincount(s, weights=t, minlength=best + 1) for s, t in zip(scores, claim, strict=True)]
    )
    laws, which = np.unique(laws.round(12), axis=0, return_inverse=True)
    rows = np.bincount(which.ravel(), weights=sizes).astype(np.float64)
    total = int((table * scores).sum())
    high = _tail(laws, rows, total)
    low = _tail(laws[:, ::-1], rows, best * int(sizes.sum()) - total)
    return min(1.0, 2 * min(high, low))


def _scores(channel: FloatArray, n: int) -> IndexArray:
    """Return whole numbers from 0 that grow with log T[y, z], the same at each row's largest."""
    logs = np.log(channel, where=channel > 0, out=np.full(channel.shape, -np.inf))
    below = np.maximum(logs - logs.max(axis=1, keepdims=True), -_DEEPEST)
    deepest = -float(below.min())
    if deepest < _ROUNDING:
        return np.zeros(channel.shape, dtype=np.int64)
    most = _SCORES if len(channel) * math.sqrt(n) <= _MOST_WORK else _FEW_SCORES
    scores = np.rint((1 + below / deepest) * most).astype(np.int64)
    return np.asarray(scores // max(int(np.gcd.reduce(scores, axis=None)), 1))


def _tail(laws: FloatArray, rows: FloatArray, total: int) -> float:
    """Return P(S ≥ total), or 1 where that is at most the mean: never too little.

    S is the sum of the scores of independent rows, of which ``rows[i]`` have the law ``laws[i]`` on
    the scores 0, 1, …. Laws are tilted until ``total`` is their mean, convolved and tilted back.
    """
    # The claim gets the benefit of its rounding: no law so near has a larger sum.
    shares = np.maximum(np.cumsum(laws, axis=1) - _ROUNDING, 0.0)
    shares[:, -1] = 1.0
    laws, values = np.diff(shares, axis=1, prepend=0.0), np.arange(laws.shape[1])

    def tilted(slope: float) -> tuple[FloatArray, float]:
        weighted = laws * np.exp(slope * (values - values[-1]))
        sums = weighted.sum(axis=1)
        size = float(rows @ np.log(sums)) + slope * values[-1] * float(rows.sum())
        return weighted / sums[:, None], size

    def beyond(slope: float) -> float:
        return float(rows @ (tilted(slope)[0] @ values)) - total

    if beyond(0.0) >= 0:
        return 1.0
    steep = beyond(_STEEPEST) < 0  # No row could have a larger score.
    slope = _STEEPEST if steep else float(brentq(beyond, 0.0, _STEEPEST, xtol=1e-9))
    law, size = tilted(slope)
    means = law @ values
    spread = math.sqrt(float(rows @ (law @ values**2 - means**2)))
    most = int(values[-1] * rows.sum())
    reach = min(math.ceil(_WINDOW * (spread + values[-1])), most - total)
    length = min(2 * math.ceil(_WINDOW * (spread + values[-1])), most) + 1
    wave = np.ones(length, dtype=np.complex128)
    for one, n in zip(law, rows, strict=True):
        wave *= np.fft.fft(one, length) ** n
    steps = np.arange(reach + 1)
    found = np.maximum(np.fft.ifft(wave).real, 0.0)[(total + steps) % length]
    tail = math.exp(min(size - slope * total, 0.0)) * float(found @ np.exp(-slope * steps))
    return min(tail * (1 + _DIGITS), 1.0)
