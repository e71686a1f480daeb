"""What follows from the claim alone: exact numbers and curves, no data."""

import math
from collections.abc import Iterator

import numpy as np

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.mechanisms.numeric.view import NUMERIC_NAMES
from ldpaudit.mechanisms.response.gaussian_rr import GaussianRR
from ldpaudit.result import Curve, Estimate

ORDERS = (1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256)
"""The Rényi orders α of the exact curve."""
_FEW_ORDERS = (1.1, 1.5, 2, 3, 5, 8, 16, 32, 64, 256)
_MANY_LABELS = 24
_UNBOUNDED_EPSILON = 10.0
_DELTA_POINTS = 41


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
    if isinstance(claim, RandomizedResponse):
        yield from _randomized_response(claim)
    if isinstance(claim, GaussianRR):
        yield from _gaussian_features(claim)
    if claim.name in NUMERIC_NAMES:
        yield from _errors(claim)


def _errors(claim: Mechanism) -> Iterator[Estimate]:
    """Yield the largest bias and mean squared error of a numeric mechanism over its labels."""
    if not isinstance(claim, NumericMechanism):
        return
    # Labels anywhere in an interval have no grid; noise without clipping errs alike everywhere.
    labels = getattr(claim, "labels", None)
    if labels is not None and labels.step is None:
        ends = np.array([labels.low, (labels.low + labels.high) / 2, labels.high])
        bias, variance = claim.bias(ends), claim.variance(ends)  # type: ignore[call-arg]
        where = "at the lowest, the middle and the highest label"
    else:
        bias, variance = claim.bias(), claim.variance()
        where = "over all labels"
    yield Estimate.exact(
        "mechanism.max_bias",
        "Largest bias of a released label",
        float(np.abs(bias).max()),
        unit="label units",
        method=f"the largest |E[ŷ | y] − y| {where}",
    )
    yield Estimate.exact(
        "mechanism.max_mean_squared_error",
        "Largest mean squared error of a released label",
        float((bias**2 + variance).max()),
        unit="squared label units",
        method=f"the largest E[(ŷ − y)² | y] {where}",
    )


def _gaussian_features(claim: GaussianRR) -> Iterator[Estimate]:
    yield Estimate.exact(
        "mechanism.feature_epsilon",
        "Exact ε of the features' noise",
        claim.exact_feature_epsilon,
        axis="epsilon",
        unit="nats",
        method=f"exact ε of the features' Gaussian noise at δ = {claim.feature_delta:.3g}; "
        f"claimed: {claim.feature_epsilon:.6g}",
        reference="Balle & Wang (2018), Theorem 8",
    )


def _randomized_response(claim: RandomizedResponse) -> Iterator[Estimate]:
    k = len(claim.classes)
    yield Estimate.exact(
        "mechanism.lambda",
        "λ, the probability of drawing the label anew",
        claim.noise,
        unit="proportion",
        method="λ form: the probability of drawing the label anew, uniformly from all labels",
        reference="Busa-Fekete et al. (2023), section 8.1: λ = k/(k − 1 + e^ε)",
    )
    yield Estimate.exact(
        "mechanism.keep_probability",
        "Probability that the released label is the true one",
        1 - claim.noise + claim.noise / k,
        unit="proportion",
        method="ε form: the probability that the released label is the true one",
        reference="Ghazi et al. (2021): e^ε/(e^ε + k − 1)",
    )
    if k == 2:
        yield Estimate.exact(
            "mechanism.binary_flip",
            "Probability of a flip, λ/2",
            claim.noise / 2,
            unit="proportion",
            method="the probability that the released label is the other one, λ/2",
        )


def exact_curves(claim: Mechanism) -> Iterator[Curve]:
    """Yield the Rényi curve and δ(ε) of a claimed channel."""
    if claim.epsilon is None or not isinstance(claim, AnalysedMechanism):
        if claim.channel is None:
            return
        claim = ExplicitChannel(claim.channel)
    analysed, orders = _cheapest(claim)
    yield Curve(
        id="mechanism.rdp",
        title="Rényi divergence of the declared mechanism",
        section="renyi",
        kind="exact",
        axis="divergence",
        x=orders,
        value=tuple(analysed.rdp(alpha) for alpha in orders),
        x_label="order α",
        unit="nats",
        method="the largest Rényi divergence of order α between two labels' outputs",
        reference="Busa-Fekete et al. (2023), Definition 4.2",
    )
    epsilon = claim.epsilon or 0.0
    top = epsilon if math.isfinite(epsilon) else _UNBOUNDED_EPSILON
    grid = tuple(float(e) for e in np.linspace(0.0, max(top, 1e-3), _DELTA_POINTS))
    yield Curve(
        id="mechanism.delta",
        title="δ(ε) of the declared mechanism",
        section="renyi",
        kind="exact",
        x=grid,
        value=tuple(min(max(claim.delta(e), 0.0), 1.0) for e in grid),
        x_label="ε",
        unit="proportion",
        method="the smallest δ for which the mechanism is (ε, δ)-label-DP",
    )


def _cheapest(claim: AnalysedMechanism) -> tuple[AnalysedMechanism, tuple[float, ...]]:
    """Return a mechanism with the same divergences, and how many orders of it are worth it.

    For randomized response any two rows of its channel do.
    """
    channel = claim.channel
    if isinstance(claim, RandomizedResponse) and channel is not None:
        two = Channel(channel.matrix[:2], channel.classes[:2], channel.outputs)
        return ExplicitChannel(two), ORDERS
    many = channel is not None and len(channel.classes) > _MANY_LABELS
    return claim, _FEW_ORDERS if many else ORDERS
