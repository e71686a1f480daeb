"""A mechanism on a grid of numbers for labels anywhere between its ends: they are rounded first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import Mechanism, NumericMechanism
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.numeric.rounding import Rounding, RoundingMethod
from ldpaudit.release import FloatArray

ROUND: Final = "round"
"""The declared parameter, and the option of ``privatize``, that says how labels were rounded."""


@dataclass(frozen=True, eq=False)
class RoundedLabels(NumericMechanism):
    """Labels in a range, rounded to a mechanism's labels and released by it.

    Every row of the channel is a mixture of two rows of the mechanism's, and its own rows are among
    them. So ε, δ(ε) and the Rényi divergences, which are convex or quasi-convex in the pair of
    rows, are exactly the mechanism's.

    Parameters
    ----------
    inner : NumericMechanism
        With finitely many labels.
    method : {"unbiased", "nearest"}
        How labels are rounded.

    References
    ----------
    Badanidiyuru et al. (2023), section 3.1, "Handling continuous Y".
    """

    inner: NumericMechanism
    method: RoundingMethod

    def __post_init__(self) -> None:
        values = self.inner.label_values
        if values is None:
            raise InputError(
                f"The mechanism {self.inner.name!r} takes any number in its range: there "
                "is nothing to round."
            )
        object.__setattr__(self, "traits", self.inner.traits)
        _ = self.rounding

    @cached_property
    def rounding(self) -> Rounding:
        """The rounding to the mechanism's labels."""
        assert self.inner.label_values is not None
        return Rounding(tuple(self.inner.label_values.tolist()), self.method)

    @property
    def after_rounding(self) -> NumericMechanism:
        """The mechanism."""
        return self.inner

    @property
    def description(self) -> str:
        """The mechanism's, and how labels are rounded."""
        how = "at random without bias" if self.method == "unbiased" else "to the nearest one"
        return f"{self.inner.description}, labels between its labels rounded {how}"

    @property
    def epsilon(self) -> float | None:
        """The mechanism's ε in nats."""
        return self.inner.epsilon

    @property
    def channel(self) -> Channel | None:
        """None: any number in the range is a label."""
        return None

    def declaration(self) -> Mapping[str, Any]:
        """Return the mechanism's parameters, and how labels are rounded."""
        return {**self.inner.declaration(), ROUND: self.method}

    def parametrisations(self) -> dict[str, float]:
        """Return the mechanism's."""
        return self.inner.parametrisations()

    def remarks(self) -> tuple[str, ...]:
        """Return the mechanism's."""
        return self.inner.remarks()

    def delta(self, epsilon: float) -> float:
        """Return the mechanism's δ(ε)."""
        return self.inner.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return the mechanism's Rényi label-DP parameter."""
        return self.inner.rdp(alpha)

    @property
    def label_bounds(self) -> tuple[float, float]:
        """The lowest and the highest label."""
        return self.inner.label_bounds

    @property
    def label_values(self) -> None:
        """None: any number between the bounds."""
        return None

    @property
    def output_values(self) -> FloatArray | None:
        """The mechanism's outputs."""
        return self.inner.output_values

    @property
    def error_tolerance(self) -> float:
        """The mechanism's; rounding to the nearest label has a bias of its own."""
        return self.inner.error_tolerance if self.method == "unbiased" else 0.0

    @cached_property
    def _means(self) -> FloatArray:
        """E[ŷ | grid point], float64 of shape (k,)."""
        return np.asarray(self.rounding.points + self.inner.bias())

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y for the mechanism's labels, or the given ones, shape (k,)."""
        if labels is None:
            return self.inner.bias()
        if self.method == "unbiased":
            return self.rounding.mean(self.inner.bias(), labels)
        return self.rounding.mean(self._means, labels) - labels

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y] for the mechanism's labels, or the given ones, shape (k,)."""
        own = self.inner.variance()
        if labels is None:
            return own
        lower, up = self.rounding.neighbours(labels)
        gap = self._means[lower + 1] - self._means[lower]
        return np.asarray(self.rounding.mean(own, labels) + up * (1 - up) * gap**2)

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior over the mechanism's labels."""
        return self.inner.expected_loss(prior, name)

    def bin_edges(self, bins: int) -> FloatArray:
        """Return the mechanism's bounds between bins of outputs."""
        return self.inner.bin_edges(bins)

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        """Return the channel from labels to bins, as :meth:`NumericMechanism.binned`."""
        fine = self.inner.binned(edges)
        if labels is None:
            return fine
        mixed = self.rounding.mean(fine.matrix, labels)
        return Channel(mixed, tuple(np.asarray(labels).tolist()), fine.outputs)

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the likelihood of each released number, a mixture, of shape (n, g)."""
        fine = self.inner.likelihood(released, self.rounding.points)
        return self.rounding.mean(fine.T, labels).T


def with_rounding(mechanism: Mechanism, method: Any) -> Mechanism:
    """Return a mechanism whose labels are rounded first; ``method`` None: the mechanism itself.

    Raises
    ------
    InputError
        If it is not a mechanism on finitely many numbers, or there is no such method.
    """
    if method is None:
        return mechanism
    if not isinstance(mechanism, NumericMechanism) or not mechanism.traits.numeric:
        raise InputError(f"The labels of the mechanism {mechanism.name!r} are not rounded.")
    return RoundedLabels(mechanism, method)
