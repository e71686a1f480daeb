"""Which mechanism the counts of true against released labels do fit, where not the claimed one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from ldpaudit.estimators.epsilon.consistency import binomial_p_value, channel_consistency
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import BoolArray, FloatArray, IndexArray

_AGREES = 0.05
"""Counts agree with a channel if their p-value is above this; they then do not speak against it."""
_DIFFERS = 0.01
_SHARPEST = 40.0


@dataclass(frozen=True)
class Slip:
    """A way to compute the probability wrongly: the ε that comes out, in nats, and its words."""

    epsilon: float
    words: str


def fitted_epsilon(counts: IndexArray, channel: Channel) -> float | None:
    """Return the ε at which the claimed channel, sharpened or flattened, fits the counts.

    Rows are proportional to T[y, z]^s, for randomized response randomized response; s maximises
    the likelihood, which is log-concave in it.

    Parameters
    ----------
    counts : int64 array of shape (k, m)
        Rows by true and released label.
    channel : Channel
        The claim.

    Returns
    -------
    float or None
        In nats; ∞ where every label was released as the channel's likeliest one; None where no s
        fits.
    """
    if (
        channel.epsilon <= 0
        or not np.isfinite(channel.epsilon)
        or counts[channel.matrix <= 0].any()
    ):
        return None
    matrix = channel.matrix
    logs = np.log(matrix, where=matrix > 0, out=np.full(matrix.shape, -np.inf))

    def sharper(s: float) -> Channel:
        return Channel(_powered(logs, s), channel.classes, channel.outputs)

    def cost(s: float) -> float:
        fitted = sharper(s).matrix
        return -float(counts[counts > 0] @ np.log(np.maximum(fitted[counts > 0], 1e-300)))

    if not counts[channel.matrix < channel.matrix.max(axis=1, keepdims=True)].any():
        return math.inf
    s = float(minimize_scalar(cost, bounds=(0.0, _SHARPEST), method="bounded").x)
    fitted = sharper(s)
    return fitted.epsilon if agrees(counts, fitted.matrix) else None


def _powered(logs: FloatArray, s: float) -> FloatArray:
    weights = np.exp(s * (logs - logs.max(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def agrees(counts: IndexArray, channel: FloatArray) -> bool:
    """Return whether counts do not speak against a channel, both of shape (k, m)."""
    return channel_consistency(counts, channel, _AGREES).p_value > _AGREES


def likely_slip(counts: IndexArray, channel: Channel) -> Slip | None:
    """Return the slip that fits the counts of a claimed randomized response best, None without."""
    if channel.outputs != channel.classes or not 0 < channel.epsilon < math.inf:
        return None
    claimed = RandomizedResponse.from_epsilon(channel.classes, channel.epsilon)
    if not np.allclose(claimed.channel.matrix, channel.matrix, atol=1e-9):
        return None
    sizes, fitting = counts.sum(axis=1), {}
    for slip in _slips(channel.epsilon, claimed.noise, len(channel.classes)):
        matrix = RandomizedResponse.from_epsilon(channel.classes, slip.epsilon).channel.matrix
        if agrees(counts, matrix):
            fitting[slip] = abs(float(sizes @ matrix.diagonal()) - np.trace(counts))
    return min(fitting, key=fitting.__getitem__, default=None)


def _slips(epsilon: float, noise: float, k: int) -> Iterator[Slip]:
    """Yield the slips of randomized response with that ε and λ on k labels."""
    changed, redrawn_as_changed = noise * (k - 1) / k, noise * k / (k - 1)
    if k > 2:
        words = f"the formula for two labels, e^ε/(1 + e^ε), is used for {k} labels"
        yield Slip(epsilon + math.log(k - 1), words)
    redrawn = (
        ("the chance of a changed label is used as λ, the chance of a redraw", changed),
        ("λ and 1 − λ are exchanged", 1 - noise),
        ("λ is computed as e^−ε", math.exp(-epsilon)),
        ("the noise is applied twice", 1 - (1 - noise) ** 2),
        (
            "λ, the chance of a redraw, is used as that of a changed label",
            redrawn_as_changed,
        ),
    )
    for words, share in redrawn:
        if 0 < share < 1:
            yield Slip(math.log1p(k * (1 - share) / share), words)
    yield Slip(2 * epsilon, "ε is doubled")
    yield Slip(epsilon / 2, "ε is halved")
    yield Slip(epsilon * math.log(10), "powers of 10 are taken in place of powers of e")
    yield Slip(epsilon * math.log(2), "powers of 2 are taken in place of powers of e")


def unlike_the_claim(counts: IndexArray, channel: FloatArray) -> BoolArray:
    """Return which true labels' rows speak against a claimed channel, bool of shape (k,).

    Exact binomial tests of all entries, Bonferroni; one in a hundred honest releases has any.
    """
    sizes = counts.sum(axis=1, keepdims=True)
    p_values = binomial_p_value(counts, sizes, channel)
    return np.asarray((p_values * p_values.size <= _DIFFERS).any(axis=1) & (sizes[:, 0] > 0))
