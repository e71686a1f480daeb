"""Finite label channels and their exact privacy analysis.

A channel is a row-stochastic matrix T of shape (k, m): T[y, z] is the probability that the true
label y is released as the output z. The analysis is exact and uses no data.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, Label

ROW_SUM_TOLERANCE = 1e-9
_SAFE_EXPONENT = 600.0


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
        scaled = math.exp(epsilon) * self.matrix
        return float(max(np.clip(row - scaled, 0, None).sum(axis=1).max() for row in self.matrix))

    def rdp(self, alpha: float) -> float:
        """Return the Rényi label-DP parameter at order α > 0, in nats.

        The maximum over ordered pairs of D_α(T[y] ‖ T[y']); α = 1 is the Kullback–Leibler
        divergence, α = ∞ is ε.

        References
        ----------
        Mironov (2017), Definition 3; Busa-Fekete et al. (2023), Definition 4.2.
        """
        return float(self.divergences(alpha).max())

    def divergences(self, alpha: float) -> FloatArray:
        """Return D_α(T[y] ‖ T[y']) in nats for all pairs, float64 of shape (k, k)."""
        if alpha <= 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        with np.errstate(divide="ignore"):
            logs = np.log(self.matrix)
        if (
            alpha != 1
            and (self.matrix > 0).all()
            and abs(alpha - 1) * self.epsilon < _SAFE_EXPONENT
        ):
            return _renyi_of_pairs(logs, alpha)
        k = len(self.classes)
        result = np.zeros((k, k))
        for y in range(k):
            for other in range(k):
                if y != other:
                    result[y, other] = _renyi(logs[y], logs[other], alpha)
        return result

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


def _renyi_of_pairs(logs: FloatArray, alpha: float) -> FloatArray:
    """Return D_α of all pairs of rows by one matrix product, float64 of shape (k, k).

    Σ_z p^α q^{1−α} = Σ_z m (p/m)^α (q/m)^{1−α} with m the column's largest entry: neither power
    overflows while |α − 1| ε is moderate.
    """
    top = logs.max(axis=0)
    relative = logs - top
    sums = (np.exp(alpha * relative) * np.exp(top)) @ np.exp((1 - alpha) * relative).T
    result: FloatArray = np.maximum(np.log(sums) / (alpha - 1), 0.0)
    np.fill_diagonal(result, 0.0)
    return result


def _renyi(log_p: FloatArray, log_q: FloatArray, alpha: float) -> float:
    support = np.isfinite(log_p)
    if math.isinf(alpha):
        return float(np.max(log_p[support] - log_q[support]))
    if alpha >= 1 and not np.isfinite(log_q[support]).all():
        return math.inf
    if alpha == 1:
        p = np.exp(log_p[support])
        return float(np.sum(p * (log_p[support] - log_q[support])))
    both = support & np.isfinite(log_q)
    if not both.any():
        return math.inf
    terms = alpha * log_p[both] + (1 - alpha) * log_q[both]
    top = terms.max()
    value = (top + math.log(np.exp(terms - top).sum())) / (alpha - 1)
    return max(float(value), 0.0)
