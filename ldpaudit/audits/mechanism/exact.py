"""What follows from the claim alone: exact numbers and curves, no data."""

import math
from collections.abc import Iterator

from ldpaudit.mechanisms.analysis import delta_curve, label_errors, privacy_of, rdp_curve
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism
from ldpaudit.result import Curve, Estimate


def exact_estimates(claim: Mechanism) -> Iterator[Estimate]:
    """Yield the exact numbers of a claimed mechanism; none where nothing is claimed."""
    if claim.epsilon is not None:
        yield Estimate.exact(
            "mechanism.epsilon",
            "Declared ε",
            claim.epsilon,
            axis="epsilon",
            unit="nats",
            method="the largest log-ratio of two entries in one column of the channel",
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
    if claim.traits.numeric:
        yield from _errors(claim)


def _errors(claim: Mechanism) -> Iterator[Estimate]:
    """Yield the largest bias and mean squared error of a numeric mechanism over its labels."""
    errors = label_errors(claim)
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
