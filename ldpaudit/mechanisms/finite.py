"""The base of every mechanism with finitely many labels and finitely many outputs.

A family subclasses :class:`FiniteMechanism` as a frozen dataclass with its traits, parameters,
description and channel; everything else follows exactly from the channel.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness, WeightTable
from ldpaudit.mechanisms.interface import AnalysedMechanism, NumericMechanism
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.mechanisms.losses import Loss, loss
from ldpaudit.mechanisms.parameters import check_numeric_classes, check_prior
from ldpaudit.release import FloatArray, IndexArray, IntArray, Label


class FiniteMechanism(NumericMechanism):
    """A label mechanism that is its channel T[y, z] = P(released z | true y).

    Labels and outputs may be of any type; the methods that need numbers (``bias``, ``variance``,
    ``expected_loss``) raise an :class:`InputError` where labels or outputs are not numbers.
    """

    if TYPE_CHECKING:  # Nothing at run time: a dataclass may have it as a field.

        @property
        def channel(self) -> Channel:
            """The channel of shape (k, m)."""

    def worst_rows(self) -> Sequence[int] | None:
        """Return labels that include the worst pairs, by symmetry; None: all labels."""
        return None

    @property
    def epsilon(self) -> float:
        """The exact ε in nats."""
        return self.channel.epsilon

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        return self.channel.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats."""
        return self.channel.rdp(alpha)

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers, each entry within 2⁻⁶⁰, from which :meth:`sample` draws."""
        return WeightTable.from_probabilities(self.channel.matrix)

    def sample(self, labels: IntArray, rng: Randomness = None) -> IntArray:
        """Release labels given as codes.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Codes of the true labels, positions in ``channel.classes``.
        rng : numpy.random.Generator or BitSource, optional
            The source of randomness; default: the operating system. A NumPy generator is for
            simulations, not for a real release.

        Returns
        -------
        int32 array of shape (n,)
            Codes of the outputs, positions in ``channel.outputs``.
        """
        return self.weights.draw(check_codes(labels, len(self.channel.classes)), rng)

    def release(self, labels: npt.ArrayLike, rng: Randomness = None) -> npt.NDArray[Any]:
        """Release labels given as values.

        Parameters
        ----------
        labels : array of shape (n,)
            True labels, each one of ``channel.classes``.
        rng : numpy.random.Generator or BitSource, optional
            As in :meth:`sample`.

        Returns
        -------
        array of shape (n,)
            Values out of ``channel.outputs``.
        """
        codes = codes_of(labels, self.channel.classes)
        return as_array(self.channel.outputs)[self.sample(codes, rng)]

    @cached_property
    def label_values(self) -> FloatArray:
        """The labels as numbers, float64 of shape (k,)."""
        return np.asarray(check_numeric_classes(self.channel.classes), dtype=np.float64)

    @cached_property
    def output_values(self) -> FloatArray:
        """The outputs as numbers, float64 of shape (m,), in the channel's order."""
        if any(isinstance(z, bool | str) for z in self.channel.outputs):
            raise InputError("The outputs of this mechanism are not numbers.")
        return np.asarray(self.channel.outputs, dtype=np.float64)

    @property
    def label_bounds(self) -> tuple[float, float]:
        """The lowest and the highest label."""
        return float(self.label_values[0]), float(self.label_values[-1])

    def _rows(self, labels: FloatArray | None) -> slice | IndexArray:
        return slice(None) if labels is None else nearest(self.label_values, labels)

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y for all labels, or the given ones, float64 of shape (k,)."""
        # Deviations first, so that large labels do not cancel.
        deviation = self.output_values[None, :] - self.label_values[:, None]
        return np.asarray((self.channel.matrix * deviation).sum(axis=1)[self._rows(labels)])

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y] for all labels, or the given ones, float64 of shape (k,)."""
        deviation = self.output_values[None, :] - self.label_values[:, None]
        centred = deviation - self.bias()[:, None]
        return np.asarray((self.channel.matrix * centred**2).sum(axis=1)[self._rows(labels)])

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        """Return the channel from labels to bins of the output: post-processing, never above ε."""
        codes = np.searchsorted(np.asarray(edges), self.output_values, side="left")
        rows = self._rows(labels)
        matrix = (self.channel.matrix @ np.eye(len(edges) + 1)[codes])[rows]
        return Channel(
            matrix, tuple(self.label_values[rows].tolist()), tuple(range(len(edges) + 1))
        )

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        """Return P(released | label) at the nearest output, float64 of shape (n, g)."""
        order = np.argsort(self.output_values, kind="stable")
        columns = order[nearest(self.output_values[order], released)]
        return np.asarray(
            self.channel.matrix[np.ix_(nearest(self.label_values, labels), columns)].T
        )

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior.

        Parameters
        ----------
        prior : float64 array of shape (k,)
            The probabilities of the labels, summing to 1.
        name : {"squared", "absolute", "poisson"}
            The loss; squared is ½(ŷ − y)², so that twice it is the mean squared error.
        """
        weights = check_prior(prior, len(self.channel.classes))[:, None] * self.channel.matrix
        losses = loss(name, self.output_values[None, :], self.label_values[:, None])
        # An infinite loss of an impossible pair counts as 0.
        return float(np.where(weights > 0, weights * np.where(weights > 0, losses, 0), 0).sum())

    def accuracy(self, prior: Sequence[float] | FloatArray) -> float:
        """Return P(released = true) for y drawn from a prior of shape (k,)."""
        weights = check_prior(prior, len(self.channel.classes))
        position = {output: z for z, output in enumerate(self.channel.outputs)}
        true = [(y, position[c]) for y, c in enumerate(self.channel.classes) if c in position]
        return float(sum(weights[y] * self.channel.matrix[y, z] for y, z in true))


def noise_on(outputs: int, epsilon: float) -> float:
    """Return λ = d/(d − 1 + e^ε) of randomized response on d outputs at ε in nats."""
    return outputs / (outputs + math.expm1(epsilon))


def as_array(labels: tuple[Label, ...]) -> npt.NDArray[Any]:
    """Return label values as an array, of objects if words and numbers are mixed."""
    mixed = len({isinstance(label, str) for label in labels}) > 1
    return np.array(labels, dtype=object if mixed else None)


def check_codes(codes: IntArray, k: int) -> IntArray:
    """Return label codes; each must lie in 0 … k − 1."""
    codes = np.asarray(codes)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InputError("Label codes must be a one-dimensional array of integers.")
    outside = int(np.count_nonzero((codes < 0) | (codes >= k)))
    if outside:
        raise InputError(f"The labels must lie in the declared range; {outside:,} row(s) do not.")
    return codes.astype(np.int32, copy=False)


def codes_of(labels: npt.ArrayLike, classes: tuple[Label, ...]) -> IntArray:
    """Return the positions of label values in ``classes``, int32 of shape (n,).

    Raises
    ------
    InputError
        If a value is missing or is not one of the classes; the rows are counted, not shown.
    """
    distinct, inverse = _distinct(np.asarray(labels))
    position = {label: code for code, label in enumerate(classes)}
    table = np.array([position.get(value, -1) for value in distinct], dtype=np.int32)
    codes = table[inverse] if len(table) else np.empty(0, dtype=np.int32)
    outside = int(np.count_nonzero(codes < 0))
    if outside:
        raise InputError(f"The labels must be among the declared ones; {outside:,} row(s) are not.")
    return codes


def _distinct(values: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[np.intp]]:
    if values.dtype.kind == "O":
        order: dict[Any, int] = {}
        inverse = np.array([order.setdefault(v, len(order)) for v in values.tolist()], np.intp)
        return list(order), inverse
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct.tolist(), inverse.reshape(-1)


class StepLoss(AnalysedMechanism):
    """A mechanism whose privacy loss is −ε, 0 or ε for its worst pair of labels."""

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> float:
            """The exact ε in nats."""

    @property
    @abstractmethod
    def total_variation(self) -> float:
        """TV of the worst pair of labels, in [0, 1]."""

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε', δ)-label-DP, ε' ≥ 0 in nats.

        The mass with loss ε is p = TV/(1 − e^{−ε}), and δ(ε') = p(1 − e^{ε' − ε})₊.
        """
        if self.total_variation == 0:
            return 0.0
        mass = self.total_variation / -math.expm1(-self.epsilon)
        return mass * -math.expm1(min(epsilon - self.epsilon, 0.0))

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats.

        D_α = log(1 + t(E^α + E^{1−α} − E − 1))/(α − 1) with E = e^ε and t(E − 1) = TV, so that the
        bracket is t(E^α − 1)(1 − E^{1−α}).
        """
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        distance, epsilon = self.total_variation, self.epsilon
        if distance == 0:
            return 0.0
        if math.isinf(alpha) or math.isinf(epsilon):
            return epsilon
        if alpha == 1:
            return epsilon * distance
        log_t = math.log(distance) - math.log(math.expm1(epsilon))
        if (alpha - 1) * epsilon > 500:
            # (E^α − 1)(1 − E^{1−α}) is E^α to all digits, and adding 1 to it changes nothing.
            return (log_t + alpha * epsilon + math.log1p(-math.exp(-alpha * epsilon))) / (alpha - 1)
        bracket = math.expm1(alpha * epsilon) * -math.expm1((1 - alpha) * epsilon)
        return max(math.log1p(math.exp(log_t) * bracket) / (alpha - 1), 0.0)
