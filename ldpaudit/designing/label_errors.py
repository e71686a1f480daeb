"""Bias and variance of a mechanism on numeric labels, label by label."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import Mechanism, NumericMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.release import FloatArray

UNBIASED: Final = 1e-9
"""How far from unbiased rounding may leave a mechanism, in units of its largest output or label."""
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
    scale : float
        The largest |output|, |label| or standard deviation: what rounding is measured in.
    """

    labels: FloatArray
    bias: FloatArray
    variance: FloatArray
    scale: float

    @property
    def largest_bias(self) -> float:
        """The largest |bias| of a label, 0 where it is rounding only."""
        worst = float(np.abs(self.bias).max())
        return 0.0 if worst <= UNBIASED * self.scale else worst

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
    return LabelErrors(values, bias, variance, scale)


def _values(mechanism: NumericMechanism) -> FloatArray:
    labels = getattr(mechanism, "labels", None)
    found = labels.values if isinstance(labels, LabelRange) else mechanism.label_values  # type: ignore[attr-defined]
    return np.asarray(found, dtype=np.float64)


def _reach(mechanism: NumericMechanism) -> float:
    outputs = getattr(mechanism, "output_values", None)
    return 0.0 if outputs is None else float(np.abs(outputs).max())
