"""The analysis of a mechanism that releases several columns together."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Final

from ldpaudit.commands.mechanism.describe.result import LARGEST_SHOWN, Analysis, ColumnAnalysis
from ldpaudit.commands.mechanism.request import DescribeRequest
from ldpaudit.datasets.beside.priors import split_labels
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.analysis import delta_curve, privacy_of, rdp_curve
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.joint import OnDomains, joint_family
from ldpaudit.mechanisms.parameters import check_classes
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.release import Label

_MOST: Final = 400
"""Vectors up to which the curves are computed from the channel."""


def describe_several(request: DescribeRequest) -> Analysis:
    """Analyse a joint mechanism on the domains that the options state.

    Raises
    ------
    InputError
        If a domain or ε is missing or out of range, or an option is for one column.
    """
    name, family = request.name, joint_family(request.name)
    for option in ("classes", "labels", "prior", "noise"):
        if getattr(request, option) is not None:
            flag = "lambda" if option == "noise" else option
            raise InputError(
                f"The mechanism {name!r} releases several columns: state --epsilon and one "
                f"--domain A,B,… for each; it takes no --{flag}."
            )
    if request.more:
        raise InputError(f"The mechanism {name!r} takes no further parameter (--set).")
    several = isinstance(request.domain, Sequence) and len(request.domain) > 1
    if not several or request.epsilon is None:
        raise InputError(
            f"The mechanism {name!r} must have --epsilon and at least two domains: --domain A,B,… "
            "for each column."
        )
    return analyse_several(family(_domains(request.domain), request.epsilon))


def _domains(stated: Sequence[str | Sequence[Label]]) -> tuple[tuple[Label, ...], ...]:
    return tuple(
        tuple(map(str, split_labels(one))) if isinstance(one, str) else check_classes(one)
        for one in stated
    )


def analyse_several(mechanism: OnDomains) -> Analysis:
    """Return everything that is exactly known of a mechanism on several columns."""
    channel = mechanism.channel() if mechanism.size <= _MOST else None
    privacy = None if channel is None else privacy_of(ExplicitChannel(channel))
    delta = () if privacy is None else delta_curve(privacy)
    notes = mechanism.remarks()
    if privacy is None:
        few = f"With {mechanism.size:.6g} vectors δ(ε) and the Rényi curve are not computed."
        notes = (*notes, few)
    small = mechanism.size**2 <= LARGEST_SHOWN
    return Analysis(
        mechanism=mechanism.name,
        description=mechanism.description,
        kind="exact",
        epsilon=mechanism.epsilon,
        total_variation=delta[0][1] if delta else math.nan,
        delta=delta,
        rdp=() if privacy is None else rdp_curve(privacy),
        parametrisations={"epsilon": mechanism.epsilon},
        parameters=dict(mechanism.declaration()),
        channel=_named(channel, mechanism) if channel is not None and small else None,
        notes=notes,
        columns=tuple(
            _column(one, mechanism.epsilon_of(j)) for j, one in enumerate(mechanism.columns)
        ),
    )


def _named(channel: Channel, mechanism: OnDomains) -> Channel:
    names = tuple(", ".join(map(str, vector)) for vector in product(*mechanism.domains))
    return Channel(channel.matrix, names, names)


def _column(alone: RandomizedResponse, within: float) -> ColumnAnalysis:
    k, kept = len(alone.classes), 1 - alone.noise
    rare = alone.noise / k
    # Var of (share of released − λ/k)/(1 − λ), where the true share is 0.
    error = math.sqrt(rare * (1 - rare)) / kept if kept > 0 else math.inf
    return ColumnAnalysis(k, within, alone.epsilon, alone.keep_probability, error)
