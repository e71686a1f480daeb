"""Bias and variance of a mechanism on numeric labels, label by label."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.interface import Mechanism, NumericMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.additive import AdditiveNoise
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR
from ldpaudit.mechanisms.numeric.mesh_program import MeshRandomizer
from ldpaudit.mechanisms.numeric.optimal_unbiased import OptimalUnbiased
from ldpaudit.release import FloatArray

UNBIASED: Final = 1e-9
"""How far from unbiased rounding, or a program's solver, may leave a mechanism that is unbiased by
construction, in units of its scale."""
_ROUNDING: Final = 1e-12
"""The same for a matrix, of which nothing else is known."""
_PLACES: Final = 51


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """The error of each label.

    Attributes
    ----------
    labels : float64 array of shape (k,)
        The labels, or evenly spaced ones where any number of a range is one.
    bias, variance : float64 arrays of shape (k,)
        E[ŷ | y] − y and Var[ŷ | y].
    rounding : float
        Up to which |bias| is rounding; 0 for a family that is biased by construction, however
        little.
    """

    labels: FloatArray
    bias: FloatArray
    variance: FloatArray
    rounding: float

    @property
    def largest_bias(self) -> float:
        """The largest |bias| of a label, 0 where it is rounding only."""
        worst = float(np.abs(self.bias).max())
        return 0.0 if worst <= self.rounding else worst

    @property
    def unbiased(self) -> bool:
        """Whether the bias is rounding only."""
        return self.largest_bias == 0


def label_errors(mechanism: Mechanism) -> LabelErrors | None:
    """Return the error of each label; None where labels or outputs are no numbers."""
    if not isinstance(mechanism, NumericMechanism):
        return None
    labels = getattr(mechanism, "labels", None)
    try:
        if isinstance(labels, LabelRange) and labels.step is None:
            values = np.linspace(labels.low, labels.high, _PLACES)
            # Continuous families take any label of their range.
            bias, variance = mechanism.bias(values), mechanism.variance(values)  # type: ignore[call-arg]
        else:
            values = _values(mechanism)
            bias, variance = mechanism.bias(), mechanism.variance()
    except InputError:
        return None
    scale = max(float(np.abs(values).max()), float(np.sqrt(variance.max())), _reach(mechanism))
    return LabelErrors(values, bias, variance, scale * _tolerance(mechanism))


def _tolerance(mechanism: Mechanism) -> float:
    if isinstance(mechanism, AdditiveNoise | DiscreteNoise):
        return 0.0 if mechanism.clipped else UNBIASED
    if isinstance(mechanism, OptimalUnbiased | DebiasedRR | MeshRandomizer):
        return UNBIASED
    return _ROUNDING if isinstance(mechanism, ExplicitChannel) else 0.0


def _values(mechanism: NumericMechanism) -> FloatArray:
    labels = getattr(mechanism, "labels", None)
    found = labels.values if isinstance(labels, LabelRange) else mechanism.label_values  # type: ignore[attr-defined]
    return np.asarray(found, dtype=np.float64)


def _reach(mechanism: NumericMechanism) -> float:
    outputs = getattr(mechanism, "output_values", None)
    return 0.0 if outputs is None else float(np.abs(outputs).max())
