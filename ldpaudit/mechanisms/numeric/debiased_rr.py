"""Debiased randomized response: randomized response with outputs stretched until unbiased."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ldpaudit.mechanisms.design import Candidate, Proposal
from ldpaudit.mechanisms.interface import UNBIASED
from ldpaudit.mechanisms.numeric.interval.columns import lowered_growth
from ldpaudit.mechanisms.numeric.rr_on_bins import ResponseOnOutputs, RROnBins
from ldpaudit.mechanisms.options import CLASSES
from ldpaudit.mechanisms.parameters import Parameter, check_epsilon, check_numeric_classes
from ldpaudit.release import FloatArray, IntArray, Label


def debiased_outputs(labels: FloatArray, growth: float) -> FloatArray:
    """Return Φ(y) = ((e^ε + k − 1)y − Σ y')/(e^ε − 1) for e^ε = 1 + growth, shape (k,) → (k,).

    References
    ----------
    Badanidiyuru et al. (2023), Definition 23.
    """
    return np.asarray(labels + (len(labels) * labels - labels.sum()) / growth)


@dataclass(frozen=True)
class DebiasedRR(ResponseOnOutputs):
    """k-ary randomized response that releases Φ(y) instead of y, so that E[ŷ | y] = y.

    Parameters
    ----------
    classes : tuple
        The k labels, numbers in increasing order.
    target_epsilon : float
        ε in nats; :attr:`epsilon` is never above it.
    """

    traits = replace(
        RROnBins.traits,
        name="debiased-rr",
        title="debiased randomized response",
        options=("epsilon", *CLASSES, "round"),
        needs=frozenset(),
    )
    declared = (
        Parameter("classes", check_numeric_classes),
        Parameter("epsilon", check_epsilon, "target_epsilon"),
    )

    classes: tuple[Label, ...]
    target_epsilon: float

    def __post_init__(self) -> None:
        check_numeric_classes(self.classes)
        lowered_growth(check_epsilon(self.target_epsilon))

    @property
    def description(self) -> str:
        """Its size and ε."""
        k = len(self.classes)
        keep = 1 / (1 + (k - 1) * math.exp(-self.target_epsilon))
        return (
            f"debiased randomized response on {k} labels: ε = {self.target_epsilon:.6g} nats, "
            f"own output with probability {keep:.6g}"
        )

    @cached_property
    def outputs(self) -> tuple[float, ...]:
        """Φ(y) of each label."""
        labels = np.asarray(self.classes, dtype=np.float64)
        return tuple(debiased_outputs(labels, lowered_growth(self.target_epsilon)).tolist())

    @property
    def bins(self) -> IntArray:
        """The position of each label's output: its own."""
        return np.arange(len(self.classes), dtype=np.int32)

    @property
    def error_tolerance(self) -> float:
        """The largest absolute bias that is only rounding: it is unbiased by construction."""
        return UNBIASED

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield it for the labels and ε."""
        yield Candidate("", lambda p: Proposal(cls(p.labels.classes, p.epsilon)))
