"""Debiased randomized response: randomized response whose outputs are stretched until unbiased."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Candidate, Proposal
from ldpaudit.mechanisms.exact_sampling import TOTAL, WeightTable
from ldpaudit.mechanisms.finite import FiniteMechanism, noise_on
from ldpaudit.mechanisms.interface import UNBIASED, Traits
from ldpaudit.mechanisms.numeric.interval.columns import lowered_growth
from ldpaudit.mechanisms.options import CLASSES
from ldpaudit.mechanisms.parameters import (
    check_epsilon,
    check_numeric_classes,
    only_known,
    required,
)
from ldpaudit.release import FloatArray, Label


def debiased_outputs(labels: FloatArray, growth: float) -> FloatArray:
    """Return Φ(y) = ((e^ε + k − 1)y − Σ y')/(e^ε − 1) for e^ε = 1 + growth, shape (k,) → (k,).

    References
    ----------
    Badanidiyuru et al. (2023), Definition 23.
    """
    return np.asarray(labels + (len(labels) * labels - labels.sum()) / growth)


@dataclass(frozen=True)
class DebiasedRR(FiniteMechanism):
    """k-ary randomized response that releases Φ(y) instead of y, so that E[ŷ | y] = y.

    Parameters
    ----------
    classes : tuple
        The k labels, numbers in increasing order.
    target_epsilon : float
        ε in nats; :attr:`epsilon` is never above it.
    """

    traits = Traits(
        name="debiased-rr",
        title="debiased randomized response",
        labels="numbers",
        outputs="numbers",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=("epsilon", *CLASSES),
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset(),
    )

    classes: tuple[Label, ...]
    target_epsilon: float

    def __post_init__(self) -> None:
        check_numeric_classes(self.classes)
        lowered_growth(check_epsilon(self.target_epsilon))

    @property
    def description(self) -> str:
        """Its size and ε in words."""
        k = len(self.classes)
        keep = 1 / (1 + (k - 1) * math.exp(-self.target_epsilon))
        return (
            f"debiased randomized response on {k} labels: ε = {self.target_epsilon:.6g} nats, "
            f"own output with probability {keep:.6g}"
        )

    @cached_property
    def channel(self) -> Channel:
        """The k × k channel."""
        growth, k = lowered_growth(self.target_epsilon), len(self.classes)
        low = 1 / (growth + k)
        matrix = np.full((k, k), low)
        np.fill_diagonal(matrix, low * (1 + growth))
        outputs = debiased_outputs(np.asarray(self.classes, dtype=np.float64), growth)
        return Channel(matrix, self.classes, tuple(outputs.tolist()))

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers; their own ε is never above the target."""
        k = len(self.classes)
        low = math.ceil(TOTAL / (lowered_growth(self.target_epsilon) + k))
        table = np.full((k, k), low, dtype=np.uint64)
        np.fill_diagonal(table, TOTAL - (k - 1) * low)
        return WeightTable(table)

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters of the declaration."""
        return {"classes": list(self.classes), "epsilon": self.target_epsilon}

    @property
    def error_tolerance(self) -> float:
        """Up to which |bias| is rounding: it is unbiased by construction."""
        return UNBIASED

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon``, and λ of randomized response on the outputs."""
        return super().parametrisations() | {"lambda": noise_on(len(self.classes), self.epsilon)}

    def worst_rows(self) -> Sequence[int]:
        """Return any two labels: all pairs are alike."""
        return (0, 1)

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield it as it is."""
        yield Candidate("", lambda p: Proposal(cls(p.labels.classes, p.epsilon)))

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration."""
        only_known(parameters, {"classes", "epsilon"}, "debiased-rr")
        labels = check_numeric_classes(parameters.get("classes") or classes)
        return cls(labels, check_epsilon(required(parameters, "epsilon", "debiased-rr")))
