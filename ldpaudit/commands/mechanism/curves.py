"""Privacy curves of a mechanism, at the cost that its size allows."""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism
from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR
from ldpaudit.mechanisms.numeric.rr_on_bins import RROnBins
from ldpaudit.mechanisms.response.rr_top_k import RandomizedResponseTopK
from ldpaudit.release import FloatArray

ORDERS: Final = (
    *(
        0.5,
        0.75,
        1.0,
        1.1,
        1.25,
        1.5,
        1.75,
        2.0,
        2.5,
        3.0,
        3.5,
        4.0,
        5.0,
        6.0,
        7.0,
        8.0,
        10.0,
        12.0,
    ),
    *(16.0, 20.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, math.inf),
)
"""The orders α of a Rényi curve."""
_POINTS: Final = 61
_WORK: Final = 1.5e9
_MOST_WORK: Final = 2e9
_ENDLESS: Final = 10.0
"""Where the curve δ(ε) of a mechanism without a finite ε ends, in nats."""


class Curves(Protocol):
    """δ(ε) and the Rényi curve of a mechanism, a channel or a bound."""

    def delta(self, epsilon: float) -> float:
        """Return δ(ε), ε ≥ 0 in nats."""

    def rdp(self, alpha: float) -> float:
        """Return the Rényi parameter of order α > 0, in nats."""


@dataclass(frozen=True)
class Privacy:
    """A mechanism's ε in nats, its curves, and how many of their points can be computed."""

    epsilon: float
    curves: Curves
    points: int


def privacy_of(mechanism: Mechanism) -> Privacy:
    """Return what is exactly known of a mechanism's privacy.

    Raises
    ------
    InputError
        If nothing is claimed, or no curve is known.
    """
    if not isinstance(mechanism, AnalysedMechanism) or mechanism.epsilon is None:
        raise InputError(f"The privacy curve of the mechanism {mechanism.name!r} is not known.")
    epsilon = float(mechanism.epsilon)
    if not isinstance(mechanism, FiniteMechanism) or _closed_form(mechanism):
        return Privacy(epsilon, mechanism, _POINTS)
    channel = _distinct_rows(mechanism.channel, _representatives(mechanism))
    k, m = channel.matrix.shape
    work = k * k * m
    points = 0 if work > _MOST_WORK else int(np.clip(_WORK / work, 2, _POINTS))
    return Privacy(epsilon, channel, points)


def _closed_form(mechanism: FiniteMechanism) -> bool:
    """Say whether the family overrides δ(ε) by a closed form."""
    return type(mechanism).delta is not FiniteMechanism.delta


def _representatives(mechanism: FiniteMechanism) -> list[int] | None:
    """Return labels among which the worst pairs are, by symmetry; None to look at all."""
    if isinstance(mechanism, DebiasedRR):
        return [0, 1]
    if isinstance(mechanism, RROnBins):
        return list(mechanism.starts[:2])
    if isinstance(mechanism, RandomizedResponseTopK):
        kept = [mechanism.classes.index(label) for label in mechanism.kept[:2]]
        others = [y for y, label in enumerate(mechanism.classes) if label not in mechanism.kept]
        return kept + others[:1]
    return None


def _distinct_rows(channel: Channel, chosen: list[int] | None) -> Channel:
    """Return a channel with the same privacy: equal rows once, at least two."""
    matrix: FloatArray = channel.matrix if chosen is None else channel.matrix[chosen]
    if chosen is None:
        matrix = np.unique(matrix, axis=0)
    if len(matrix) == 1:
        matrix = np.repeat(matrix, 2, axis=0)
    outputs = tuple(range(matrix.shape[1]))
    return Channel(matrix, tuple(range(len(matrix))), outputs)


def delta_curve(privacy: Privacy) -> tuple[tuple[float, float], ...]:
    """Return (ε', δ(ε')) from ε' = 0 to the mechanism's ε, in nats; empty where not computed."""
    end = privacy.epsilon if 0 < privacy.epsilon < math.inf else _ENDLESS
    if privacy.epsilon == 0:
        end = 1.0
    places = np.linspace(0.0, end, privacy.points)
    return tuple((at, float(privacy.curves.delta(at))) for at in places.tolist())


def rdp_curve(privacy: Privacy) -> tuple[tuple[float, float], ...]:
    """Return (α, D_α) at :data:`ORDERS`, in nats; empty where not computed."""
    orders = ORDERS if privacy.points else ()
    return tuple((alpha, float(privacy.curves.rdp(alpha))) for alpha in orders)
