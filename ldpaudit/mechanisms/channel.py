"""Finite label channels and their exact privacy analysis.

A channel is a row-stochastic matrix T of shape (k, m): T[y, z] is the probability that the true
label y is released as the output z. The analysis is exact and uses no data.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.release import BoolArray, FloatArray, IndexArray, Label

ROW_SUM_TOLERANCE = 1e-9
_CACHED = 1 << 15
"""So many numbers stay in a processor's cache."""
_LARGEST = 700.0
"""e to this power is a float."""
_MOST_CELLS = 1 << 24
"""Probabilities that a composition may have."""
_LEAST_LEFT = 1e-260
"""A sum of powers below this, relative to the largest of each row, may have lost terms."""


@dataclass(frozen=True, eq=False)
class Channel:
    """A label mechanism over finite sets: T[y, z] = P(released z | true y).

    Parameters
    ----------
    matrix : float64 array of shape (k, m)
        Row-stochastic to 1e-9; k ≥ 2 true labels, m ≥ 1 outputs.
    classes : tuple, length k
        The true labels.
    outputs : tuple, length m
        The outputs.

    Raises
    ------
    InputError
        If the matrix has another shape, a negative or non-finite entry, or a row that does not
        sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.mechanisms import Channel
    >>> channel = Channel(np.array([[0.75, 0.25], [0.25, 0.75]]), ("no", "yes"), ("no", "yes"))
    >>> round(channel.epsilon, 6)  # log 3
    1.098612
    """

    matrix: FloatArray
    classes: tuple[Label, ...]
    outputs: tuple[Label, ...]

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape != (len(self.classes), len(self.outputs)):
            raise InputError(
                f"A channel must have one row per class and one column per output "
                f"({len(self.classes)} × {len(self.outputs)}), got shape {matrix.shape}."
            )
        if len(self.classes) < 2:
            raise InputError("A channel must have at least two classes.")
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            raise InputError("A channel's entries must be finite and not negative.")
        off = np.abs(matrix.sum(axis=1) - 1.0)
        if off.max() > ROW_SUM_TOLERANCE:
            raise InputError(
                f"Each row of a channel must sum to 1; row {int(off.argmax()) + 1} sums to "
                f"{matrix.sum(axis=1)[off.argmax()]:.9g}."
            )
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    @cached_property
    def epsilon(self) -> float:
        """The privacy parameter ε in nats: max over z, y ≠ y' of log T[y,z]/T[y',z].

        Infinite when an output is possible under one label and impossible under another.
        """
        used = self.matrix.max(axis=0) > 0
        high, low = self.matrix.max(axis=0)[used], self.matrix.min(axis=0)[used]
        if (low == 0).any():
            return math.inf
        return float(np.max(np.log(high) - np.log(low)))

    @cached_property
    def total_variation(self) -> float:
        """The largest total variation distance between two rows, in [0, 1]."""
        return self.delta(0.0)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which the channel is (ε, δ)-label-DP.

        δ(ε) = max over ordered pairs of Σ_z (T[y,z] − e^ε T[y',z])₊, with ε ≥ 0 in nats.
        """
        if epsilon >= self.epsilon:
            return 0.0
        scaled, most = math.exp(min(epsilon, _LARGEST)) * self.matrix, 0.0
        if epsilon > _LARGEST:
            with np.errstate(over="ignore"):  # Beyond all floats is beyond any probability.
                scaled *= math.exp(epsilon - _LARGEST)
        rows = max(_CACHED // scaled.shape[1], 1)
        for start in range(0, len(scaled), rows):
            others = scaled[start : start + rows]
            excess = np.empty_like(others)
            for row in self.matrix:
                np.maximum(np.subtract(row, others, out=excess), 0.0, out=excess)
                most = max(most, float(excess.sum(axis=1).max()))
        return most

    def rdp(self, alpha: float) -> float:
        """Return the Rényi label-DP parameter at order α > 0, in nats.

        The maximum over ordered pairs of D_α(T[y] ‖ T[y']); α = 1 is the Kullback–Leibler
        divergence, α = ∞ is ε.

        References
        ----------
        Mironov (2017), Definition 3; Busa-Fekete et al. (2023), Definition 4.2.
        """
        if math.isinf(alpha):
            return self.epsilon
        values, doubtful = self._logarithms.renyi(alpha)
        most = float(values[~doubtful].max())
        pairs = np.argwhere(doubtful)
        for y, other in pairs[np.argsort(-values[doubtful])]:
            if values[y, other] <= most:
                break
            most = max(most, self._logarithms.renyi_of_two(y, other, alpha))
        return most

    def divergences(self, alpha: float) -> FloatArray:
        """Return D_α(T[y] ‖ T[y']) in nats for all pairs, float64 of shape (k, k)."""
        values, doubtful = self._logarithms.renyi(alpha)
        for y, other in np.argwhere(doubtful):
            values[y, other] = self._logarithms.renyi_of_two(y, other, alpha)
        return values

    @cached_property
    def _logarithms(self) -> "_Logarithms":
        return _Logarithms.of(self.matrix)

    def offers(self, ability: type[Any]) -> None:  # noqa: ARG002
        """Return None: unlike a mechanism, a channel alone offers nothing else."""
        return None

    def posterior(self, prior: FloatArray) -> FloatArray:
        """Return P(y | z) for priors of shape (..., k) as an array of shape (..., m, k).

        An output of probability zero gets the prior.
        """
        prior = np.asarray(prior, dtype=np.float64)
        joint = prior[..., None, :] * self.matrix.T
        total = joint.sum(axis=-1, keepdims=True)
        safe = np.where(total > 0, total, 1.0)
        return np.where(total > 0, joint / safe, prior[..., None, :])

    def informed_accuracy(self, posterior: FloatArray) -> FloatArray:
        """Return Σ_z max_y η_y T[y, z] for each row of ``posterior``, shape (n, k) → (n,).

        The Bayes accuracy of an attacker who sees features and released label
        (Busa-Fekete et al. 2024, expected attack utility).
        """
        best = np.zeros(len(posterior))
        for column in self.matrix.T:
            best += (posterior * column).max(axis=1)
        return best

    @cached_property
    def inverse(self) -> FloatArray:
        """A left inverse of the transposed channel, float64 of shape (m, k).

        ``released_distribution @ inverse`` is the true labels' distribution.

        Raises
        ------
        InputError
            If the outputs do not determine the labels' distribution (rank below k), as at ε = 0.
        """
        if np.linalg.matrix_rank(self.matrix, tol=1e-9) < len(self.classes):
            raise InputError(
                "The channel cannot be inverted: the outputs do not distinguish all labels (ε → 0)."
            )
        return np.asarray(np.linalg.pinv(self.matrix), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Logarithms:
    """The logarithms of a channel's entries.

    Attributes
    ----------
    there : bool array of shape (k, m)
        Which entries are above 0.
    centre : float64 array of shape (m,)
        The middle of each column's logarithms.
    away : float64 array of shape (k, m)
        The logarithms less the middle of their column; 0 where an entry is 0.
    """

    there: BoolArray
    centre: FloatArray
    away: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> "_Logarithms":
        there = matrix > 0
        logs = np.log(np.where(there, matrix, 1.0))
        low = np.where(there, logs, np.inf).min(axis=0)
        high = np.where(there, logs, -np.inf).max(axis=0)
        centre = np.where(there.any(axis=0), low, 0.0)
        centre[there.any(axis=0)] += (high - low)[there.any(axis=0)] / 2
        return cls(there, centre, np.where(there, logs - centre, 0.0))

    def renyi(self, alpha: float) -> tuple[FloatArray, BoolArray]:
        """Return D_α of all pairs of rows, shape (k, k), and which are upper bounds only."""
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        doubtful = np.zeros((len(self.away), len(self.away)), dtype=bool)
        if math.isinf(alpha):
            rows = zip(self.away, self.there, strict=True)
            values = np.stack([(row[on] - self.away[:, on]).max(axis=1) for row, on in rows])
        elif alpha == 1:
            p = np.where(self.there, np.exp(self.away + self.centre), 0.0)
            values = (p * self.away).sum(axis=1)[:, None] - p @ self.away.T
        else:
            values, doubtful = self._of_order(alpha)
        if alpha >= 1 and not self.there.all():
            uncovered = self.there.astype(np.float64) @ (~self.there).T.astype(np.float64) > 0
            values[uncovered], doubtful[uncovered] = math.inf, False
        np.fill_diagonal(values, 0.0)
        np.fill_diagonal(doubtful, False)
        return np.maximum(values, 0.0), doubtful

    def _of_order(self, alpha: float) -> tuple[FloatArray, BoolArray]:
        """Return D_α of pairs for α other than 1 and ∞, and which are upper bounds only.

        Σ_z p^α q^{1−α} = Σ_z c (p/c)^α (q/c)^{1−α} with c the middle of each column, both powers
        relative to the largest of their row. Where nearly nothing is left of a sum, what was lost
        may matter.
        """
        first, second = alpha * self.away + self.centre, (1 - alpha) * self.away
        if not self.there.all():
            first[~self.there] = second[~self.there] = -np.inf
        tops = first.max(axis=1, keepdims=True), second.max(axis=1, keepdims=True)
        for power, top in zip((first, second), tops, strict=True):
            np.exp(np.subtract(power, top, out=power), out=power)
        sums = first @ second.T
        doubtful = sums < _LEAST_LEFT
        values = (np.log(np.maximum(sums, _LEAST_LEFT)) + tops[0] + tops[1].T) / (alpha - 1)
        return np.where(doubtful & (alpha < 1), math.inf, values), doubtful

    def renyi_of_two(self, y: int, other: int, alpha: float) -> float:
        """Return D_α of two rows for α other than 1 and ∞, by sums of logarithms."""
        both = self.there[y] & self.there[other]
        if not both.any():
            return math.inf
        p, q = self.away[y][both], self.away[other][both]
        terms = alpha * p + (1 - alpha) * q + self.centre[both]
        top = float(terms.max())
        return max((top + math.log(float(np.exp(terms - top).sum()))) / (alpha - 1), 0.0)


def largest_log_ratios(matrix: FloatArray) -> FloatArray:
    """Return max_z log(T[y, z] / T[y', z]) of each pair of labels, float64 of shape (k, k)."""
    found = np.empty((len(matrix), len(matrix)))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix)
        for y, own in enumerate(logs):
            found[y] = np.where(np.isneginf(own), -np.inf, own - logs).max(axis=1)
    return found


def compose(*channels: Channel) -> Channel:
    """Return the channel of independent releases by each of the channels.

    Outputs with the same information on the label (columns that are multiples of each other) are
    merged, which changes no ε, δ(ε) or Rényi divergence: n releases by randomized response have
    about n^(k−1) outputs, not k^n.

    Parameters
    ----------
    *channels : Channel
        At least one; all of the same labels in the same order.

    Returns
    -------
    Channel
        With outputs 0 … m − 1. Merged columns agree to a relative 1e-12.

    Raises
    ------
    InputError
        If the labels differ, or the product is too large to be computed.
    """
    if not channels:
        raise InputError("A composition must have at least one channel.")
    classes = channels[0].classes
    if any(channel.classes != classes for channel in channels):
        raise InputError("Composed channels must have the same labels in the same order.")
    matrix, _ = merged_columns(channels[0].matrix)
    for channel in channels[1:]:
        other, _ = merged_columns(channel.matrix)
        cells = matrix.size * other.shape[1]
        if cells > _MOST_CELLS:
            raise InputError(f"The composition would have {cells} probabilities: too many.")
        product = (matrix[:, :, None] * other[:, None, :]).reshape(len(matrix), -1)
        matrix, _ = merged_columns(product)
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    return Channel(matrix, classes, tuple(range(matrix.shape[1])))


def merged_columns(matrix: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Add up columns that are multiples of each other.

    Returns
    -------
    float64 array of shape (k, g), int64 array of shape (m,)
        The sums, and which of them each column went into; −1 for a column of zeros.
    """
    group = np.full(matrix.shape[1], -1, dtype=np.int64)
    present = np.flatnonzero(matrix.max(axis=0) > 0)
    used = matrix[:, present]
    with np.errstate(divide="ignore"):
        logs = np.log(used) - np.log(used.max(axis=0))
    shape = np.where(np.isfinite(logs), np.round(logs, 12) + 0.0, -math.inf)
    group[present] = np.unique(shape, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(group[present], kind="stable")
    starts = np.flatnonzero(np.diff(group[present][order], prepend=-1))
    return np.asarray(np.add.reduceat(used[:, order], starts, axis=1), dtype=np.float64), group
