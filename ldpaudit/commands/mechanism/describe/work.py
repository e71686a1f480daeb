"""The work of ``describe`` and ``channel``: from a mechanism to everything exact about it."""

import math
from dataclasses import replace
from typing import get_args

import numpy as np

from ldpaudit.commands.mechanism.describe.result import LARGEST_SHOWN, Analysis
from ldpaudit.commands.mechanism.describe.several import describe_several
from ldpaudit.commands.mechanism.domain import read_domain
from ldpaudit.commands.mechanism.request import ChannelRequest, DescribeRequest
from ldpaudit.commands.mechanism.specification import build
from ldpaudit.commands.priors import prior_over
from ldpaudit.datasets.beside.channels import channel_table
from ldpaudit.datasets.beside.priors import read_prior
from ldpaudit.datasets.labels import read_texts
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.analysis import (
    delta_curve,
    floor_curve,
    label_errors,
    privacy_of,
    rdp_curve,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism, NumericMechanism
from ldpaudit.mechanisms.joint import JOINT
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray, Label
from ldpaudit.running.progress import Progress


def describe(request: DescribeRequest, _progress: Progress) -> Analysis:
    """Analyse a mechanism given by its parameters.

    Raises
    ------
    InputError
        If the labels, the prior or a parameter are not valid.
    """
    if request.name in JOINT or request.domain:
        return describe_several(request)
    domain = read_domain(request.classes, request.labels, request.prior, request)
    return analyse(build(request.wanted, domain), domain.prior)


def describe_channel(request: ChannelRequest, _progress: Progress) -> Analysis:
    """Analyse a channel matrix.

    Raises
    ------
    InputError
        If the matrix is no channel, or the prior is not one of its labels.
    """
    table = channel_table(request.file, request)
    rows, columns = read_texts(table.classes), read_texts(table.outputs)
    mechanism = ExplicitChannel(Channel(np.array(table.matrix), rows, columns))
    prior = None if request.prior is None else prior_over(rows, read_prior(request.prior, request))
    analysis = analyse(mechanism, prior)
    return replace(analysis, notes=(*analysis.notes, table.remark)) if table.remark else analysis


def analyse(mechanism: Mechanism, prior: FloatArray | None = None) -> Analysis:
    """Return everything that is exactly known of a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        One whose privacy curve is known.
    prior : float64 array of shape (k,), optional
        The probabilities of its labels, summing to 1.

    Raises
    ------
    InputError
        If its privacy curve is not known.
    """
    privacy, notes = privacy_of(mechanism), [*mechanism.remarks()]
    delta, channel = delta_curve(privacy), mechanism.channel
    if not delta:
        notes.append("Its labels and outputs are too many for δ(ε) and the Rényi curve.")
    return Analysis(
        mechanism=mechanism.name,
        description=mechanism.description,
        kind="exact",
        epsilon=privacy.epsilon,
        total_variation=delta[0][1] if delta else math.nan,
        delta=delta,
        rdp=rdp_curve(privacy),
        parametrisations=mechanism.parametrisations(),
        parameters=dict(mechanism.declaration()),
        channel=None if channel is None or channel.matrix.size > LARGEST_SHOWN else channel,
        errors=label_errors(mechanism),
        loss=None if prior is None else _losses(mechanism, prior),
        accuracy=None if prior is None else _accuracy(mechanism, prior),
        floor=floor_curve(mechanism),
        notes=tuple(notes),
    )


def _losses(mechanism: Mechanism, prior: FloatArray) -> dict[str, float | str]:
    losses: dict[str, float | str] = {}
    for name in get_args(Loss):
        try:
            losses[name] = expected_loss(mechanism, prior, name)
        except InputError as reason:
            losses[name] = str(reason)
    return losses


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


def _accuracy(mechanism: Mechanism, prior: FloatArray) -> float | None:
    if not isinstance(mechanism, FiniteMechanism):
        return None
    labels: set[Label] = set(mechanism.channel.classes)
    return None if labels.isdisjoint(mechanism.channel.outputs) else mechanism.accuracy(prior)
