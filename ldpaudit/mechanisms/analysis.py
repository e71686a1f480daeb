"""The exact analysis of a mechanism: its privacy curves and the errors of its labels."""

# An audit and ``ldpaudit mechanism describe`` both take their numbers from here.

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.release import FloatArray

_LOW: Final = (0.5, 0.75, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0)
_HIGH: Final = (10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0)
# The orders α of a Rényi curve.
CURVE_ORDERS: Final = (*_LOW, *_HIGH, math.inf)
_POINTS: Final = 61
_WORK: Final = 1.5e9
_MOST_WORK: Final = 2e9
# The end of the curve δ(ε) of a mechanism without a finite ε, in nats.
_ENDLESS: Final = 10.0
_PLACES: Final = 51


class Curves(Protocol):
    """δ(ε) and the Rényi curve of a mechanism, a channel or a bound."""

    def delta(self, epsilon: float) -> float:
        """Return δ(ε), ε ≥ 0 in nats."""

    def rdp(self, alpha: float) -> float:
        """Return the Rényi parameter of order α > 0, in nats."""


@dataclass(frozen=True)
class Privacy:
    """A mechanism's ε in nats, its curves, and the number of points to compute of each."""

    epsilon: float
    curves: Curves
    points: int


def privacy_of(mechanism: Mechanism) -> Privacy:
    """Return a mechanism's exact privacy."""
    analysed = mechanism.after_rounding.offers(AnalysedMechanism)
    if analysed is None or analysed.epsilon is None:
        name = mechanism.after_rounding.name
        raise InputError(f"The privacy curve of the mechanism {name!r} is not known.")
    epsilon, channel = float(analysed.epsilon), analysed.compared
    if channel is None:
        return Privacy(epsilon, analysed, _POINTS)
    k, m = channel.matrix.shape
    work = k * k * m
    points = 0 if work > _MOST_WORK else int(np.clip(_WORK / work, 2, _POINTS))
    return Privacy(epsilon, channel, points)


def delta_curve(privacy: Privacy) -> tuple[tuple[float, float], ...]:
    """Return (ε', δ(ε')) from ε' = 0 to the mechanism's ε, in nats; empty where not computed."""
    end = privacy.epsilon if 0 < privacy.epsilon < math.inf else _ENDLESS
    if privacy.epsilon == 0:
        end = 1.0
    places = np.linspace(0.0, end, privacy.points)
    return tuple((at, float(privacy.curves.delta(at))) for at in places.tolist())


def rdp_curve(privacy: Privacy) -> tuple[tuple[float, float], ...]:
    """Return (α, D_α) at :data:`CURVE_ORDERS`, in nats; empty where not computed."""
    orders = CURVE_ORDERS if privacy.points else ()
    return tuple((alpha, float(privacy.curves.rdp(alpha))) for alpha in orders)


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """The error of each label."""

    labels: FloatArray
    bias: FloatArray
    variance: FloatArray
    rounding: float
    every: bool = True

    @property
    def largest_bias(self) -> float:
        """The largest |bias| of a label; 0 if it is only rounding."""
        worst = float(np.abs(self.bias).max())
        return 0.0 if worst <= self.rounding else worst

    @property
    def unbiased(self) -> bool:
        """Whether the bias is only rounding."""
        return self.largest_bias == 0


def label_errors(mechanism: Mechanism) -> LabelErrors | None:
    """Return the error of each label; None where labels or outputs are not numbers."""
    numbers = mechanism.offers(NumericMechanism)
    if numbers is None:
        return None
    try:
        labels = numbers.label_values
        values = np.linspace(*numbers.label_bounds, _PLACES) if labels is None else labels
        bias = numbers.bias(None if labels is not None else values)
        variance = numbers.variance(None if labels is not None else values)
        outputs = numbers.output_values
    except InputError:
        return None
    reach = 0.0 if outputs is None else float(np.abs(outputs).max())
    scale = max(float(np.abs(values).max()), float(np.sqrt(variance.max())), reach)
    return LabelErrors(values, bias, variance, scale * numbers.error_tolerance, labels is not None)
