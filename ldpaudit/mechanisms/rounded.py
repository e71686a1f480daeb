"""A mechanism on a grid of numbers for labels anywhere between its ends: they are rounded first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import RoundedFirst
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import Mechanism, NumericMechanism
from ldpaudit.mechanisms.label_range import Loss
from ldpaudit.mechanisms.listing import ROUND
from ldpaudit.mechanisms.rounding import Rounding, RoundingMethod
from ldpaudit.release import FloatArray


class Rounded(NumericMechanism):
    """Labels in a range, rounded to the labels of a mechanism and released by it."""

    # Every row of the channel is a mixture of two rows of the mechanism's, and its own rows are
    # among them. So ε, δ(ε) and the Rényi divergences, which are convex or quasi-convex in the pair
    # of rows, are exactly the mechanism's.
    # Badanidiyuru et al. (2023), section 3.1, "Handling continuous Y".

    channel = None

    if TYPE_CHECKING:

        @property
        def inner(self) -> NumericMechanism:
            """The mechanism, with finitely many labels."""

        @property
        def method(self) -> RoundingMethod:
            """How labels are rounded."""

    @cached_property
    def rounding(self) -> Rounding:
        """The rounding to the mechanism's labels."""
        assert self.inner.label_values is not None
        return Rounding(tuple(self.inner.label_values.tolist()), self.method)

    @property
    def compared(self) -> Channel | None:
        return self.inner.compared

    def delta(self, epsilon: float) -> float:
        return (self.compared or self.inner).delta(epsilon)

    def rdp(self, alpha: float) -> float:
        return (self.compared or self.inner).rdp(alpha)

    @property
    def error_tolerance(self) -> float:
        """The mechanism's; rounding to the nearest label has a bias of its own."""
        return self.inner.error_tolerance if self.method == "unbiased" else 0.0

    @cached_property
    def _means(self) -> FloatArray:
        """E[ŷ | grid point], float64 of shape (k,)."""
        return np.asarray(self.rounding.points + self.inner.bias())

    def _values(self, labels: FloatArray | None) -> FloatArray:
        return self.rounding.points if labels is None else np.asarray(labels)

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        values = self._values(labels)
        if self.method == "unbiased":
            return self.rounding.mean(self.inner.bias(), values)
        return self.rounding.mean(self._means, values) - values

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        values = self._values(labels)
        lower, up = self.rounding.neighbours(values)
        gap = self._means[lower + 1] - self._means[lower]
        own = self.rounding.mean(self.inner.variance(), values)
        return np.asarray(own + up * (1 - up) * gap**2)

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        fine, values = self.inner.binned(edges), self._values(labels)
        matrix = self.rounding.mean(fine.matrix, values)
        return Channel(matrix, tuple(values.tolist()), fine.outputs)

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        (lower, up), points = self.rounding.neighbours(labels), self.rounding.points
        below, above = (self.inner.likelihood(released, points[lower + i]) for i in (0, 1))
        return np.asarray((1 - up) * below + up * above)


@dataclass(frozen=True, eq=False)
class RoundedLabels(Rounded, RoundedFirst):
    """A mechanism on a grid that was declared with rounding before it."""

    inner: NumericMechanism
    method: RoundingMethod

    label_values = None

    def __post_init__(self) -> None:
        if self.inner.label_values is None:
            raise InputError(
                f"The mechanism {self.inner.name!r} takes any number in its range: there "
                "is nothing to round."
            )
        object.__setattr__(self, "traits", self.inner.traits)
        _ = self.rounding

    @property
    def epsilon(self) -> float:
        return self.inner.epsilon

    @property
    def label_bounds(self) -> tuple[float, float]:
        return self.inner.label_bounds

    @property
    def output_values(self) -> FloatArray | None:
        return self.inner.output_values

    @property
    def output_step(self) -> float | None:
        return self.inner.output_step

    def parametrisations(self) -> dict[str, float]:
        return self.inner.parametrisations()

    def remarks(self) -> tuple[str, ...]:
        return self.inner.remarks()

    def bin_edges(self, bins: int) -> FloatArray:
        return self.inner.bin_edges(bins)

    @property
    def after_rounding(self) -> NumericMechanism:
        return self.inner

    @property
    def description(self) -> str:
        how = "at random without bias" if self.method == "unbiased" else "to the nearest one"
        return f"{self.inner.description}, labels between its labels rounded {how}"

    def declaration(self) -> Mapping[str, Any]:
        return {**self.inner.declaration(), ROUND: self.method}

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        return self.inner.expected_loss(prior, name)


def with_rounding(mechanism: Mechanism, method: Any) -> Mechanism:
    """Return a mechanism whose labels are rounded first; ``method`` None: the mechanism itself."""
    if method is None:
        return mechanism
    if not isinstance(mechanism, NumericMechanism) or not mechanism.traits.numeric:
        raise InputError(f"The labels of the mechanism {mechanism.name!r} are not rounded.")
    return RoundedLabels(mechanism, method)
