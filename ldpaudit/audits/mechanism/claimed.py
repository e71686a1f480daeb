"""What a claim promises: exact numbers and curves that follow from it alone."""

import math
from collections.abc import Iterator

import numpy as np

from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.mechanisms.analysis import delta_curve, label_errors, privacy_of, rdp_curve
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism
from ldpaudit.result import Curve, Estimate, Note
from ldpaudit.result.stated import DECLARED_EPSILON


def labels_in_the_clear(context: AuditContext) -> Iterator[Part]:
    """Yield whose labels a claim releases as they are."""
    channel = context.claim.channel
    if channel is None or not channel.unperturbed:
        return
    kept = set(channel.unperturbed)
    outputs = [z for z in range(len(channel.outputs)) if channel.matrix[list(kept), z].any()]
    rows = len(context.release)
    people = int(np.isin(context.release.released, outputs).sum())
    yield Note.warning(
        "mechanism",
        f"The claim releases {len(kept)} of the {len(channel.classes)} labels as "
        f"{'it is' if len(kept) == 1 else 'they are'}: that of {people:,} of the {rows:,} people "
        f"({people / rows:.1%}), whose ε is infinite. Of everybody else it is certain that the "
        f"label is another one; among the other labels ε = {channel.epsilon_of_others:.6g}.",
    )


def exact_estimates(claim: Mechanism) -> Iterator[Estimate]:
    """Yield the exact numbers of a claimed mechanism; none where nothing is claimed."""
    if claim.epsilon is not None:
        yield Estimate.exact(
            DECLARED_EPSILON,
            "Declared ε",
            claim.epsilon,
            axis="epsilon",
            unit="nats",
            method="the largest log-ratio of two entries in one column of the channel",
        )
    if (others := _epsilon_of_others(claim)) is not None:
        yield Estimate.exact(
            "mechanism.epsilon_of_others",
            "Declared ε among the labels that are not released as they are",
            others,
            axis="epsilon",
            unit="nats",
            method="the largest log-ratio of two entries in one column of the channel, without the "
            "labels that have outputs of their own alone; that somebody has one of these, or none, "
            "is certain",
        )
    if claim.channel is not None:
        yield Estimate.exact(
            "mechanism.total_variation",
            "Total variation between two labels' outputs",
            min(claim.channel.total_variation, 1.0),
            unit="proportion",
            method="the largest total variation distance between two rows of the channel",
        )
    yield from claim.exact_estimates()
    errors = label_errors(claim) if claim.traits.numeric else None
    if errors is None:
        return
    where = "over all labels" if errors.every else "at evenly spaced labels"
    yield Estimate.exact(
        "mechanism.max_bias",
        "Largest bias of a released label",
        errors.largest_bias,
        unit="label units",
        method=f"the largest |E[ŷ | y] − y| {where}",
    )
    yield Estimate.exact(
        "mechanism.max_mean_squared_error",
        "Largest mean squared error of a released label",
        float((errors.bias**2 + errors.variance).max()),
        unit="squared label units",
        method=f"the largest E[(ŷ − y)² | y] {where}",
    )


def _epsilon_of_others(claim: Mechanism) -> float | None:
    """Return ε among the labels that are not unperturbed, nats; None where none is."""
    parts = [one.channel for one in claim.by_stratum or ()] or [claim.channel]
    channels = [channel for channel in parts if channel is not None and channel.unperturbed]
    if not channels:
        return None
    return max(c.epsilon_of_others for c in parts if c is not None)


def exact_curves(claim: Mechanism) -> Iterator[Curve]:
    """Yield the Rényi curve and δ(ε) of a claim; none where they are not known, or too much."""
    if claim.epsilon is None or claim.offers(AnalysedMechanism) is None:
        return
    privacy = privacy_of(claim)
    if not privacy.points:
        return
    orders, divergences = zip(*(p for p in rdp_curve(privacy) if math.isfinite(p[0])), strict=True)
    yield Curve(
        id="mechanism.rdp",
        title="Rényi divergence of the declared mechanism",
        section="renyi",
        kind="exact",
        axis="divergence",
        x=orders,
        value=divergences,
        x_label="order α",
        unit="nats",
        method="the largest Rényi divergence of order α between two labels' outputs",
        reference="Busa-Fekete et al. (2023), Definition 4.2",
    )
    grid, deltas = zip(*delta_curve(privacy), strict=True)
    yield Curve(
        id="mechanism.delta",
        title="δ(ε) of the declared mechanism",
        section="renyi",
        kind="exact",
        x=grid,
        value=tuple(min(max(delta, 0.0), 1.0) for delta in deltas),
        x_label="ε",
        unit="proportion",
        method="the smallest δ for which the mechanism is (ε, δ)-label-DP",
    )
