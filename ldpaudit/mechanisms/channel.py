"""Finite label channels and their exact privacy analysis."""

# A channel is a row-stochastic matrix T of shape (k, m): T[y, z] is the probability that the true
# label y is released as the output z. The analysis is exact and uses no data.

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpaudit.arrays import unwriteable
from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, Label

ROW_SUM_TOLERANCE = 1e-9
# e to this power is a float.
_LARGEST = 700.0
# A sum of powers below this, relative to the largest of each row, may have lost terms.
_LEAST_LEFT = 1e-260


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
        object.__setattr__(self, "matrix", unwriteable(matrix))

    @cached_property
    def epsilon(self) -> float:
        """The privacy parameter ε in nats: max over z, y ≠ y' of log T[y,z]/T[y',z]."""
        # Infinite when an output is possible under one label and impossible under another.
        used = self.matrix.max(axis=0) > 0
        high, low = self.matrix.max(axis=0)[used], self.matrix.min(axis=0)[used]
        if (low == 0).any():
            return math.inf
        return float(np.max(np.log(high) - np.log(low)))

    @cached_property
    def unperturbed(self) -> tuple[int, ...]:
        """The labels, by place, that every output of theirs gives away: no other label has it."""
        alone = np.count_nonzero(self.matrix, axis=0) == 1
        return tuple(np.flatnonzero(~(self.matrix[:, ~alone] > 0).any(axis=1)).tolist())

    @cached_property
    def epsilon_of_others(self) -> float:
        """ε in nats among the labels that are not unperturbed: :attr:`epsilon` where none is."""
        # T is block-diagonal there: P(z | y) = P(z | y') = 0 for each output z of an unperturbed
        # label and all others y, y'. So for y, y' both among the others the largest log-ratio is
        # that of their own block; between an unperturbed label and any other it is infinite, and
        # δ(ε) = 1 at every ε: whether somebody has such a label is known for certain.
        rest = np.delete(self.matrix, self.unperturbed, axis=0)
        rest = rest[:, rest.max(axis=0, initial=0.0) > 0]
        if len(rest) < 2:
            return 0.0
        if (rest == 0).any():
            return math.inf
        return float(np.max(np.log(rest.max(axis=0)) - np.log(rest.min(axis=0))))

    @cached_property
    def total_variation(self) -> float:
        """The largest total variation distance between two rows, in [0, 1]."""
        return self.delta(0.0)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP at ``epsilon`` ≥ 0 in nats."""
        # δ(ε) = max over ordered pairs of Σ_z (T[y,z] − e^ε T[y',z])₊, with ε ≥ 0 in nats.
        if epsilon >= self.epsilon:
            return 0.0
        others = math.exp(min(epsilon, _LARGEST)) * self.matrix
        most, excess = 0.0, np.empty_like(others)
        for row in self.matrix:
            np.maximum(np.subtract(row, others, out=excess), 0.0, out=excess)
            most = max(most, float(excess.sum(axis=1).max()))
        return min(most, 1.0)  # A sum of probabilities may be a last digit larger.

    def rdp(self, alpha: float) -> float:
        """Return the Rényi label-DP parameter in nats at the order ``alpha`` > 0."""
        # The maximum over ordered pairs of D_α(T[y] ‖ T[y']); α = 1 is the Kullback–Leibler
        # divergence, α = ∞ is ε.
        # Mironov (2017), Definition 3; Busa-Fekete et al. (2023), Definition 4.2.
        return self.epsilon if math.isinf(alpha) else float(self.divergences(alpha).max())

    def divergences(self, alpha: float) -> FloatArray:
        """Return D_α(T[y] ‖ T[y']) in nats of all pairs at ``alpha`` > 0, float64 (k, k)."""
        # Σ_z p^α q^{1−α} = Σ_z c (p/c)^α (q/c)^{1−α} with c the middle of each column, both powers
        # relative to the largest of their row.
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        there, (centre, away) = self.matrix > 0, self._logarithms
        if math.isinf(alpha):
            values = largest_log_ratios(self.matrix)
        elif alpha == 1:
            values = (self.matrix * away).sum(axis=1)[:, None] - self.matrix @ away.T
        else:
            first = np.where(there, alpha * away + centre, -np.inf)
            second = np.where(there, (1 - alpha) * away, -np.inf)
            tops = first.max(axis=1, keepdims=True), second.max(axis=1, keepdims=True)
            sums = np.exp(first - tops[0]) @ np.exp(second - tops[1]).T
            logs = np.log(np.maximum(sums, _LEAST_LEFT)) + tops[0] + tops[1].T
            # Where nearly nothing is left of a sum, what was lost may matter.
            for y in np.flatnonzero((sums < _LEAST_LEFT).any(axis=1)):
                logs[y] = np.logaddexp.reduce(first[y] + second, axis=1)
            values = logs / (alpha - 1)
        if alpha >= 1 and not there.all():
            values[there.astype(np.float64) @ (~there).T.astype(np.float64) > 0] = math.inf
        np.fill_diagonal(values, 0.0)
        return np.maximum(values, 0.0)

    @cached_property
    def _logarithms(self) -> tuple[FloatArray, FloatArray]:
        """The middle of each column's logarithms, (m,), and the logarithms less it, (k, m)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.matrix)
            low = np.where(self.matrix > 0, logs, np.inf).min(axis=0)
            centre = np.nan_to_num((low + logs.max(axis=0)) / 2)  # 0 for a column of zeros.
        return centre, np.where(self.matrix > 0, logs - centre, 0.0)

    def offers(self, ability: type[Any]) -> None:  # noqa: ARG002
        """Return None: unlike a mechanism, a channel has no ``ability`` besides."""
        return None

    def posterior(self, prior: FloatArray) -> FloatArray:
        """Return P(y | z), float64 of shape (..., m, k), of a ``prior`` of shape (..., k)."""
        # An output of probability zero gets the prior.
        prior = np.asarray(prior, dtype=np.float64)
        joint = prior[..., None, :] * self.matrix.T
        total = joint.sum(axis=-1, keepdims=True)
        safe = np.where(total > 0, total, 1.0)
        return np.where(total > 0, joint / safe, prior[..., None, :])

    def informed_accuracy(self, posterior: FloatArray) -> FloatArray:
        """Return Σ_z max_y η_y T[y, z] for each row of ``posterior``, shape (n, k) → (n,)."""
        # The Bayes accuracy of an attacker who sees features and released label (Busa-Fekete et al.
        # 2024, expected attack utility).
        best = np.zeros(len(posterior))
        for column in self.matrix.T:
            best += (posterior * column).max(axis=1)
        return best

    @cached_property
    def inverse(self) -> FloatArray:
        """A left inverse of the transposed channel, float64 of shape (m, k)."""
        # ``released_distribution @ inverse`` is the true labels' distribution.
        if np.linalg.matrix_rank(self.matrix, tol=1e-9) < len(self.classes):
            raise InputError(
                "The channel cannot be inverted: the outputs do not distinguish all labels (ε → 0)."
            )
        return np.asarray(np.linalg.pinv(self.matrix), dtype=np.float64)


def two_rows(one: float, other: float, *same: float) -> Channel:
    """Return the channel of two labels: P(a statistic for the one, for the other, for neither)."""
    matrix = np.array([[one, other, *same], [other, one, *same]])
    return Channel(matrix, (0, 1), tuple(range(matrix.shape[1])))


def step_rows(epsilon: float, total_variation: float) -> Channel:
    """Return the law of the worst pair of labels where the privacy loss is −ε, 0 or ε."""
    # The mass with loss ε is TV/(1 − e^{−ε}).
    high = total_variation / -math.expm1(-epsilon) if total_variation else 0.0
    low = high * math.exp(-epsilon)
    return two_rows(high, low, max(1 - high - low, 0.0))


def largest_log_ratios(matrix: FloatArray) -> FloatArray:
    """Return max_z log(T[y, z] / T[y', z]) of each pair of labels, float64 of shape (k, k)."""
    found = np.empty((len(matrix), len(matrix)))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix)
        for y, own in enumerate(logs):
            found[y] = np.where(np.isneginf(own), -np.inf, own - logs).max(axis=1)
    return found


ChannelFamily = Callable[[float], Channel]
"""From an ε in nats: the channel of a release at it."""
