"""RR-on-Bins: randomized response over the outputs of a partition of numeric labels into bins.

A label's own bin's output is released with probability e^ε/(e^ε + d − 1), each of the other d − 1
with probability 1/(e^ε + d − 1). Optimal among all ε-DP channels for losses that grow with the
distance (Ghazi et al. 2023, Theorem 5); biased.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Candidate, Problem, Proposal, numeric_traits
from ldpaudit.mechanisms.exact_sampling import TOTAL, WeightTable
from ldpaudit.mechanisms.finite import FiniteMechanism, noise_on
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.numeric.interval.columns import lowered_growth
from ldpaudit.mechanisms.options import DESIGN, MechanismOptions
from ldpaudit.mechanisms.parameters import (
    check_epsilon,
    check_numeric_classes,
    only_known,
    required,
)
from ldpaudit.release import FloatArray, IntArray, Label


@dataclass(frozen=True)
class RROnBins(FiniteMechanism):
    """Randomized response over d bins of neighbouring labels.

    Parameters
    ----------
    classes : tuple
        The k labels, numbers in increasing order.
    target_epsilon : float
        ε in nats; :attr:`epsilon` is never above it, and 0 where there is one bin.
    starts : tuple of int
        The code of each bin's first label, beginning with 0, increasing.
    outputs : tuple of float
        Each bin's output, increasing.
    """

    traits = numeric_traits("rr-on-bins", "RR-on-Bins", DESIGN, "prior")

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
        """Its size and ε in words."""
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

    @cached_property
    def channel(self) -> Channel:
        """The k × d channel."""
        growth, bins = lowered_growth(self.target_epsilon), len(self.starts)
        low = 1 / (growth + bins)
        matrix = np.full((len(self.classes), bins), low)
        matrix[np.arange(len(self.classes)), self.bins] = low * (1 + growth)
        return Channel(matrix, self.classes, self.outputs)

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers; their own ε is never above the target."""
        bins = len(self.starts)
        low = math.ceil(TOTAL / (lowered_growth(self.target_epsilon) + bins))
        table = np.full((len(self.classes), bins), low, dtype=np.uint64)
        table[np.arange(len(self.classes)), self.bins] = TOTAL - (bins - 1) * low
        return WeightTable(table)

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters of the declaration."""
        return {
            "classes": list(self.classes),
            "epsilon": self.target_epsilon,
            "starts": list(self.starts),
            "outputs": list(self.outputs),
        }

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon``, and λ of randomized response on the bins."""
        return super().parametrisations() | {"lambda": noise_on(len(self.starts), self.epsilon)}

    def worst_rows(self) -> Sequence[int]:
        """Return a label of each of two bins."""
        return self.starts[:2]

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield the optimal bins: optimal for every loss that grows with the distance.

        References
        ----------
        Ghazi et al. (2023), Theorem 5.
        """

        def build(problem: Problem) -> Proposal:
            mechanism = cls._optimal(
                problem.labels.classes, problem.prior, problem.epsilon, problem.loss
            )
            return Proposal(mechanism, "all ε-label-DP mechanisms")

        yield Candidate("", build)

    @classmethod
    def from_options(cls, options: MechanismOptions) -> "RROnBins":
        """Build the bins that are optimal for the prior and the loss."""
        classes, prior, epsilon = options.for_prior(cls.traits.name)
        return cls._optimal(check_numeric_classes(classes), prior, epsilon, options.loss)

    @staticmethod
    def _optimal(
        classes: tuple[Label, ...], prior: FloatArray, epsilon: float, loss: Loss
    ) -> "RROnBins":
        # The design is built on this module.
        from ldpaudit.mechanisms.numeric.bin_design import optimal_bins

        return optimal_bins(classes, prior, epsilon, loss).mechanism

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration."""
        only_known(parameters, {"classes", "epsilon", "starts", "outputs"}, "rr-on-bins")
        labels = check_numeric_classes(parameters.get("classes") or classes)
        starts = required(parameters, "starts", "rr-on-bins")
        outputs = required(parameters, "outputs", "rr-on-bins")
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in starts):
            raise InputError("The bins must start at label codes, which are integers.")
        if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in outputs):
            raise InputError("The outputs of the bins must be numbers.")
        epsilon = check_epsilon(required(parameters, "epsilon", "rr-on-bins"))
        return cls(labels, epsilon, tuple(starts), tuple(map(float, outputs)))
