"""What is exactly known of one mechanism: numbers in, one frozen value out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.analysis import (
    LabelErrors,
    delta_curve,
    label_errors,
    privacy_of,
    rdp_curve,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism, NumericMechanism
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray, Label

Kind = Literal["exact", "upper bound"]
Points = tuple[tuple[float, float], ...]

LARGEST_SHOWN: Final = 4096
"""Cells of a channel that is repeated in an analysis."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """A mechanism's privacy and error.

    Attributes
    ----------
    mechanism : str
        Its name.
    description : str
        One phrase with every parametrisation.
    kind : {"exact", "upper bound"}
        What ``epsilon``, ``delta``, ``rdp`` and ``total_variation`` are.
    epsilon, total_variation : float
        ε in nats, and the largest total variation distance of two labels' outputs (δ at ε = 0).
    delta, rdp : tuples of pairs
        (ε, δ(ε)) and (α, Rényi divergence of order α in nats); empty where they were too much to
        compute, which a note says.
    parametrisations : mapping
        The same mechanism in other words: ``lambda``, ``scale`` and others.
    parameters : mapping
        Its declaration.
    channel : Channel or None
        None where there is none, or it has more than 4,096 cells.
    errors : LabelErrors or None
        Bias and variance of each label, where labels and outputs are numbers.
    loss : mapping or None
        Expected losses under the prior; a text says why there is none. None without a prior.
    accuracy : float or None
        P(released = true) under the prior.
    notes : tuple of str
        What else should be known.
    """

    mechanism: str
    description: str
    kind: Kind
    epsilon: float
    total_variation: float
    delta: Points
    rdp: Points
    parametrisations: Mapping[str, float]
    parameters: Mapping[str, Any]
    channel: Channel | None = None
    errors: LabelErrors | None = None
    loss: Mapping[str, float | str] | None = None
    accuracy: float | None = None
    notes: tuple[str, ...] = ()


def analyse(
    mechanism: Mechanism,
    prior: FloatArray | None = None,
    notes: Sequence[str] = (),
) -> Analysis:
    """Return everything that is exactly known of a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        One whose privacy curve is known.
    prior : float64 array of shape (k,), optional
        The probabilities of its labels, summing to 1.
    notes : sequence of str
        What to say beside it.

    Raises
    ------
    InputError
        If its privacy curve is not known.
    """
    privacy = privacy_of(mechanism)
    remarks = [*notes, *mechanism.remarks()]
    delta, rdp = delta_curve(privacy), rdp_curve(privacy)
    if not delta:
        remarks.append("Its labels and outputs are too many for δ(ε) and the Rényi curve.")
    channel = _shown(mechanism.channel)
    return Analysis(
        mechanism=mechanism.name,
        description=mechanism.description,
        kind="exact",
        epsilon=privacy.epsilon,
        total_variation=delta[0][1] if delta else math.nan,
        delta=delta,
        rdp=rdp,
        parametrisations=mechanism.parametrisations(),
        parameters=dict(mechanism.declaration()),
        channel=channel,
        errors=label_errors(mechanism),
        loss=None if prior is None else _losses(mechanism, prior),
        accuracy=_accuracy(mechanism, prior),
        notes=tuple(remarks),
    )


def _shown(channel: Channel | None) -> Channel | None:
    return channel if channel is not None and channel.matrix.size <= LARGEST_SHOWN else None


def _losses(mechanism: Mechanism, prior: FloatArray) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name in get_args(Loss):
        try:
            found[name] = expected_loss(mechanism, prior, name)
        except InputError as reason:
            found[name] = str(reason)
    return found


def expected_loss(mechanism: Mechanism, prior: FloatArray, name: Loss) -> float:
    """Return E[ℓ(ŷ, y)] under a prior, squared being ½(ŷ − y)²; ∞ where it is infinite.

    Raises
    ------
    InputError
        If labels or outputs are no numbers, or the loss cannot be used with these labels.
    """
    if not isinstance(mechanism, NumericMechanism):
        raise InputError("The outputs of this mechanism are not numbers.")
    value = float(mechanism.expected_loss(prior, name))
    return math.inf if np.isnan(value) else value


def _accuracy(mechanism: Mechanism, prior: FloatArray | None) -> float | None:
    if prior is None or not isinstance(mechanism, FiniteMechanism):
        return None
    labels: set[Label] = set(mechanism.channel.classes)
    if labels.isdisjoint(mechanism.channel.outputs):
        return None
    return mechanism.accuracy(prior)
