"""What neighbours' labels say about a row's posterior: an estimate, and a box that contains it.

The box is a Clopper–Pearson interval for each label, for the mean posterior of the neighbourhood.
An outsider counts released labels; the box is then carried through the inverse of the channel.
"""

from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.release import FloatArray, IntArray

SMOOTHING = 0.5
"""Added to each label's count in the estimate, so that no estimated loss is infinite."""


@dataclass(frozen=True)
class PosteriorBox:
    """Posteriors of m rows, each with an interval for every label.

    Attributes
    ----------
    estimate : float64 array of shape (m, k)
        Rows sum to 1, entries strictly inside (0, 1).
    low, high : float64 arrays of shape (m, k)
        Ends of the intervals; low ≤ estimate ≤ high.
    sizes : int32 array of shape (m,)
        The neighbourhoods' sizes.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    sizes: IntArray

    @classmethod
    def from_counts(cls, counts: IntArray, totals: IntArray, error: float) -> "PosteriorBox":
        """Build it from label counts in neighbourhoods.

        Parameters
        ----------
        counts : int32 array of shape (m, k)
        totals : int32 array of shape (m,)
            Neighbourhood sizes, at least 1.
        error : float
            The probability, for each row, that its box misses the mean posterior of the row's
            neighbourhood: Bonferroni over the labels, half of it in each tail. Two labels share one
            interval.

        Returns
        -------
        PosteriorBox
            The estimate is (count + 1/2)/(total + k/2).

        Notes
        -----
        Given the features a count is a sum of independent indicators with different probabilities.
        Clopper–Pearson remains valid for their mean (Hoeffding 1956: such a sum is less spread out
        than the binomial with the same mean).
        """
        counts = np.asarray(counts)
        k = counts.shape[1]
        sizes = np.broadcast_to(np.asarray(totals)[:, None], counts.shape)
        estimate = (counts + SMOOTHING) / (sizes + SMOOTHING * k)
        tail = error / 2 if k == 2 else error / (2 * k)
        low, high = _intervals(counts, sizes, tail)
        return cls(estimate, np.minimum(low, estimate), np.maximum(high, estimate), sizes[:, 0])

    def through(self, channel: FloatArray) -> "PosteriorBox":
        """Carry a box for released labels back to true labels.

        Parameters
        ----------
        channel : float64 array of shape (k, m)
            P(z | y), of rank k, the same for all features.

        Returns
        -------
        PosteriorBox
            Contains η whenever this box contains ηT. For two labels and two outputs the ends of the
            interval are mapped by η = (η̃ − T[0,1])/(T[1,1] − T[0,1]) and cut at 0 and 1. The
            estimate is mapped likewise, put on the simplex, and kept half a standard error away
            from 0, since no finite sample can tell a smaller share from none.

        Raises
        ------
        InputError
            If the channel loses a label (rank below k).
        """
        inverse, offset = centred_inverse(channel)
        falling, rising = np.minimum(inverse, 0), np.maximum(inverse, 0)
        low = np.clip(offset + self.low @ rising + self.high @ falling, 0, 1)
        high = np.clip(offset + self.high @ rising + self.low @ falling, 0, 1)
        variance = (self.estimate * (1 - self.estimate)) @ inverse**2 / self.sizes[:, None]
        estimate = np.maximum(
            onto_simplex(offset + self.estimate @ inverse), SMOOTHING * np.sqrt(variance)
        )
        estimate /= estimate.sum(axis=1, keepdims=True)
        return PosteriorBox(
            estimate, np.minimum(low, estimate), np.maximum(high, estimate), self.sizes
        )


def centred_inverse(channel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (A, c), float64 of shapes (m, k) and (k,), with η = c + η̃A for every η̃ = ηT.

    Any column of the inverse may be shifted, since released shares sum to 1; shifting it by its
    median makes intervals for η narrowest. For randomized response each true label's share then
    depends on its own released share alone.

    Raises
    ------
    InputError
        If the rank of the channel is below k.
    """
    channel = np.asarray(channel, dtype=np.float64)
    if np.linalg.matrix_rank(channel, tol=1e-9) < len(channel):
        raise InputError("The channel cannot be inverted: some label leaves no trace (ε → 0).")
    inverse = np.linalg.pinv(channel)
    offset = np.median(inverse, axis=0)
    return np.asarray(inverse - offset), np.asarray(offset)


def onto_simplex(points: FloatArray) -> FloatArray:
    """Return the nearest probability vector of each row, float64 of shape (n, k).

    References
    ----------
    Held, Wolfe, Crowder (1974), Validation of subgradient optimization, section 3.
    """
    k = points.shape[1]
    falling = -np.sort(-points, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, k + 1)
    support = (falling > excess).sum(axis=1)
    shift = excess[np.arange(len(points)), support - 1]
    return np.asarray(np.maximum(points - shift[:, None], 0.0))


def _intervals(counts: IntArray, sizes: IntArray, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return Clopper–Pearson ends, each distinct pair of count and size computed once."""
    pairs = counts.astype(np.int64) << 32 | sizes.astype(np.int64)
    distinct, place = np.unique(pairs, return_inverse=True)
    count, size = distinct >> 32, distinct & 0xFFFFFFFF
    low = clopper_pearson_lower(count, size, tail)[place]
    high = clopper_pearson_upper(count, size, tail)[place]
    return low.reshape(counts.shape), high.reshape(counts.shape)
