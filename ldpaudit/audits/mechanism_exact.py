"""What follows from the claim alone: exact numbers and curves, no data."""

import math
from collections.abc import Iterator

import numpy as np

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import Mechanism
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
        yield Estimate(
            id="mechanism.epsilon",
            kind="exact",
            value=claim.epsilon,
            unit="nats",
            method="the largest log-ratio of two entries in one column of the channel",
        )
    if claim.channel is not None:
        yield Estimate(
            id="mechanism.total_variation",
            kind="exact",
            value=min(claim.channel.total_variation, 1.0),
            unit="proportion",
            method="the largest total variation distance between two rows of the channel",
        )
    if isinstance(claim, RandomizedResponse):
        yield from _randomized_response(claim)


def _randomized_response(claim: RandomizedResponse) -> Iterator[Estimate]:
    k = len(claim.classes)
    yield Estimate(
        id="mechanism.lambda",
        kind="exact",
        value=claim.noise,
        unit="proportion",
        method="λ form: the probability of drawing the label anew, uniformly from all labels",
        reference="Busa-Fekete et al. (2023), section 8.1: λ = k/(k − 1 + e^ε)",
    )
    yield Estimate(
        id="mechanism.keep_probability",
        kind="exact",
        value=1 - claim.noise + claim.noise / k,
        unit="proportion",
        method="ε form: the probability that the released label is the true one",
        reference="Ghazi et al. (2021): e^ε/(e^ε + k − 1)",
    )
    if k == 2:
        yield Estimate(
            id="mechanism.binary_flip",
            kind="exact",
            value=claim.noise / 2,
            unit="proportion",
            method="the probability that the released label is the other one, λ/2",
        )


def exact_curves(claim: Mechanism) -> Iterator[Curve]:
    """Yield the Rényi curve and δ(ε) of a claimed channel."""
    if claim.channel is None:
        return
    channel = _smallest_equivalent(claim)
    orders = _FEW_ORDERS if len(channel.classes) > _MANY_LABELS else ORDERS
    yield Curve(
        id="mechanism.rdp",
        kind="exact",
        x=orders,
        value=tuple(channel.rdp(alpha) for alpha in orders),
        x_label="order α",
        unit="nats",
        method="the largest Rényi divergence of order α between two rows of the channel",
        reference="Busa-Fekete et al. (2023), Definition 4.2",
    )
    top = channel.epsilon if math.isfinite(channel.epsilon) else _UNBOUNDED_EPSILON
    grid = tuple(float(e) for e in np.linspace(0.0, max(top, 1e-3), _DELTA_POINTS))
    yield Curve(
        id="mechanism.delta",
        kind="exact",
        x=grid,
        value=tuple(min(claim.channel.delta(e), 1.0) for e in grid),
        x_label="ε",
        unit="proportion",
        method="the smallest δ for which the channel is (ε, δ)-label-DP",
    )


def _smallest_equivalent(claim: Mechanism) -> Channel:
    """Return a channel with the same divergences: for randomized response any two rows do."""
    assert claim.channel is not None
    channel = claim.channel
    if isinstance(claim, RandomizedResponse):
        return Channel(channel.matrix[:2], channel.classes[:2], channel.outputs)
    return channel
