"""RR-on-Bins: randomized response over the outputs of a partition of numeric labels into bins.

Optimal among all ε-DP channels for losses that grow with the
distance (Ghazi et al. 2023, Theorem 5); biased.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Candidate, Problem, Proposal, numeric_traits
from ldpaudit.mechanisms.exact_sampling import TOTAL, WeightTable
from ldpaudit.mechanisms.finite import FiniteMechanism, noise_on
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.numeric.interval.columns import lowered_growth
from ldpaudit.mechanisms.options import DESIGN, MechanismOptions
from ldpaudit.mechanisms.parameters import Parameter, check_epsilon, check_numeric_classes
from ldpaudit.release import FloatArray, IntArray, Label


class ResponseOnOutputs(FiniteMechanism):
    """Randomized response over d outputs, each of them the true one of some labels.

    A label's own output is released with probability e^ε/(e^ε + d − 1), each other one with
    1/(e^ε + d − 1).
    """

    if TYPE_CHECKING:
        classes: tuple[Label, ...]
        target_epsilon: float
        """ε in nats; :attr:`epsilon` is never above it."""

        @property
        def outputs(self) -> tuple[float, ...]:
            """The d outputs."""

        @property
        def bins(self) -> IntArray:
            """The position of each label's own output, int32 of shape (k,)."""

    @cached_property
    def channel(self) -> Channel:
        """The k × d channel."""
        growth, d = lowered_growth(self.target_epsilon), len(self.outputs)
        low = 1 / (growth + d)
        matrix = np.full((len(self.classes), d), low)
        matrix[np.arange(len(self.classes)), self.bins] = low * (1 + growth)
        return Channel(matrix, self.classes, self.outputs)

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers; their own ε is never above the target."""
        d = len(self.outputs)
        low = math.ceil(TOTAL / (lowered_growth(self.target_epsilon) + d))
        table = np.full((len(self.classes), d), low, dtype=np.uint64)
        table[np.arange(len(self.classes)), self.bins] = TOTAL - (d - 1) * low
        return WeightTable(table)

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon``, and λ of randomized response on the outputs."""
        return super().parametrisations() | {"lambda": noise_on(len(self.outputs), self.epsilon)}

    def worst_rows(self) -> Sequence[int]:
        """Return a label of each of two outputs."""
        _, first = np.unique(self.bins, return_index=True)
        return [int(label) for label in first[:2]]


def _codes(starts: Any) -> tuple[int, ...]:
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in starts):
        raise InputError("The bins must start at label codes, which are integers.")
    return tuple(starts)


def _numbers(outputs: Any) -> tuple[float, ...]:
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in outputs):
        raise InputError("The outputs of the bins must be numbers.")
    return tuple(map(float, outputs))


@dataclass(frozen=True)
class RROnBins(ResponseOnOutputs):
    """Randomized response over d bins of neighbouring labels.

    Parameters
    ----------
    classes : tuple
        The k labels, numbers in increasing order.
    target_epsilon : float
        ε in nats; :attr:`epsilon` is never above it, and 0 where there is one bin.
    starts : tuple of int
        The code of each bin's first label: 0 first, increasing.
    outputs : tuple of float
        Each bin's output, increasing.
    """

    traits = numeric_traits("rr-on-bins", "RR-on-Bins", DESIGN, "prior")

    declared = (
        Parameter("classes", check_numeric_classes),
        Parameter("epsilon", check_epsilon, "target_epsilon"),
        Parameter("starts", _codes),
        Parameter("outputs", _numbers),
    )

    classes: tuple[Label, ...]
    target_epsilon: float
    starts: tuple[int, ...]
    outputs: tuple[float, ...]

    def __post_init__(self) -> None:
        check_numeric_classes(self.classes)
        lowered_growth(check_epsilon(self.target_epsilon))
        rising = all(a < b for a, b in zip(self.starts, self.starts[1:], strict=False))
        if not self.starts or self.starts[0] != 0 or not rising:
            raise InputError("The bins must start at label code 0 and increase.")
        if self.starts[-1] >= len(self.classes) or len(self.outputs) != len(self.starts):
            raise InputError("Each bin must hold a label and have one output.")
        if not all(map(math.isfinite, self.outputs)) or len(set(self.outputs)) < len(self.outputs):
            raise InputError("The outputs of the bins must be finite and distinct.")

    @property
    def description(self) -> str:
        """Its size and ε."""
        bins = len(self.starts)
        keep = (
            math.exp(-np.logaddexp(0, math.log(bins - 1) - self.target_epsilon)) if bins > 1 else 1
        )
        return (
            f"randomized response on {bins} bins of {len(self.classes)} labels, "
            f"ε = {self.target_epsilon:.6g} nats, own bin with probability {keep:.6g}"
        )

    @cached_property
    def bins(self) -> IntArray:
        """The bin of each label, int32 of shape (k,)."""
        inner = np.searchsorted(self.starts, np.arange(len(self.classes)), side="right") - 1
        return inner.astype(np.int32)

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield the optimal bins: optimal for every loss that grows with the distance.

        References
        ----------
        Ghazi et al. (2023), Theorem 5.
        """

        def build(problem: Problem) -> Proposal:
            labels = problem.labels.classes
            mechanism = _optimal(labels, problem.prior, problem.epsilon, problem.loss)
            return Proposal(mechanism, "all ε-label-DP mechanisms")

        yield Candidate("", build)

    @classmethod
    def from_options(cls, options: MechanismOptions) -> FiniteMechanism:
        """Build the bins that are optimal for the prior and the loss."""
        return _optimal(*options.for_prior(cls.traits.name), options.loss)


def _optimal(
    classes: tuple[Label, ...], prior: FloatArray, epsilon: float, loss: Loss
) -> FiniteMechanism:
    # The design's module imports this one.
    from ldpaudit.mechanisms.numeric.bin_design import optimal_bins

    return optimal_bins(classes, prior, epsilon, loss).mechanism
