"""Which mechanism the counts of true against released labels do fit, where not the claimed one."""

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ldpaudit.estimators.epsilon.consistency import binomial_p_value, channel_consistency
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel, ChannelFamily
from ldpaudit.release import BoolArray, FloatArray, IndexArray
from ldpaudit.result.numbers import number

_AGREES = 0.05
"""Counts agree with a channel if their p-value is above this; they then do not speak against it."""
_AGREES_WELL = 0.2
_DIFFERS, _RARE, _HALF = 0.01, 0.01, 0.5
_CLEARLY_DIFFERS = 1e-4
_SHARPEST = 40.0


def signs(
    counts: IndexArray, channel: Channel, family: ChannelFamily | None = None
) -> dict[str, Any]:
    """Return what counts look like that do not fit the claimed channel, as facts for advice.

    ``family`` is the claimed mechanism at another ε in nats; without it the channel is sharpened.
    """
    if agrees(counts, channel.matrix):
        return {}
    epsilon = fitted_epsilon(counts, channel, family)
    finite = epsilon is not None and math.isfinite(epsilon)
    # Few unchanged labels fit many slips, but every slip changes some.
    slip = None if epsilon == math.inf else likely_slip(counts, channel)
    found: dict[str, Any] = {
        "epsilon": epsilon,
        "in_the_clear": epsilon == math.inf,
        "fitted_epsilon": number(epsilon, digits=2) if epsilon is not None and finite else "",
    }
    if slip is not None:
        found |= {"slip_epsilon": number(slip[0], digits=2), "slip": slip[1]}
    same, sizes = channel.outputs == channel.classes, counts.sum(axis=1)
    if same and finite:
        promised = float(sizes @ channel.matrix.diagonal() / sizes.sum())
        clear = (float(np.trace(counts) / sizes.sum()) - promised) / max(1 - promised, 1e-12)
        found["clear_share"] = f"{100 * clear:.0f} %" if _RARE < clear < _HALF else ""
    odd = _odd_classes(counts, channel.matrix)
    if epsilon is None and len(odd):
        *first, last = [str(channel.classes[place]) for place in odd]
        several = f"classes {', '.join(first)} and {last} are"
        found["odd_classes"] = several if first else f"class {last} is"
        if same:
            kept = counts[odd[0], odd[0]] / sizes[odd[0]]
            found["kept"] = f"{100 * kept:.0f} %"
            found["promised"] = f"{100 * channel.matrix[odd[0], odd[0]]:.0f} %"
    return found


def _odd_classes(counts: IndexArray, channel: FloatArray) -> IndexArray:
    """Return the classes that were released otherwise than claimed, where the others were not."""
    # None unless the others are as many, in classes and in rows, and agree well with the claim:
    # what all classes have in common shows first in the largest.
    sizes = counts.sum(axis=1)
    odd = unlike_the_claim(counts, channel, _CLEARLY_DIFFERS)
    others = ~odd & (sizes > 0)
    outnumbered = odd.sum() <= others.sum() and sizes[odd].sum() <= sizes[others].sum()
    if not odd.any() or not outnumbered:
        return np.empty(0, dtype=np.int64)
    p_value = channel_consistency(counts[others], channel[others], _AGREES).p_value
    return np.flatnonzero(odd) if p_value > _AGREES_WELL else np.empty(0, dtype=np.int64)


def agrees(counts: IndexArray, channel: FloatArray) -> bool:
    """Return whether counts do not speak against a channel, both of shape (k, m)."""
    return channel_consistency(counts, channel, _AGREES).p_value > _AGREES


def fitted_epsilon(
    counts: IndexArray, channel: Channel, family: ChannelFamily | None = None
) -> float | None:
    """Return the ε at which the claimed channel, sharpened or flattened, fits the counts, in nats.

    Of a family, its likeliest member. Without one, rows are proportional to T[y, z]^s, for
    randomized response randomized response; s maximises the likelihood, which is log-concave in it.
    ∞ where every label was released as the channel's likeliest one; None where none fits.
    """
    matrix = channel.matrix
    finite = channel.epsilon > 0 and np.isfinite(channel.epsilon)
    if not finite or counts[matrix <= 0].any():
        return None
    if not counts[matrix < matrix.max(axis=1, keepdims=True)].any():
        return math.inf
    if family is not None:
        likeliest = _likeliest(counts, channel.epsilon, family)
        return likeliest if agrees(counts, family(likeliest).matrix) else None
    logs = np.log(matrix, where=matrix > 0, out=np.full(matrix.shape, -np.inf))

    def sharper(s: float) -> Channel:
        weights = np.exp(s * (logs - logs.max(axis=1, keepdims=True)))
        powered = weights / weights.sum(axis=1, keepdims=True)
        return Channel(powered, channel.classes, channel.outputs)

    def cost(s: float) -> float:
        return _cost(counts, sharper(s))

    found = sharper(float(minimize_scalar(cost, bounds=(0.0, _SHARPEST), method="bounded").x))
    return found.epsilon if agrees(counts, found.matrix) else None


def _likeliest(counts: IndexArray, near: float, family: ChannelFamily) -> float:
    """Return the likeliest ε of a family, in nats, from a fortieth to forty times one near it."""
    ends = math.log(near / _SHARPEST), math.log(near * _SHARPEST)

    def cost(logarithm: float) -> float:
        return _cost(counts, family(math.exp(logarithm)))

    return math.exp(float(minimize_scalar(cost, bounds=ends, method="bounded").x))


def _cost(counts: IndexArray, channel: Channel) -> float:
    """Return the negative log-likelihood of counts."""
    fitted = channel.matrix[counts > 0]
    return -float(counts[counts > 0] @ np.log(np.maximum(fitted, 1e-300)))


def likely_slip(counts: IndexArray, channel: Channel) -> tuple[float, str] | None:
    """Return the slip that fits the counts of a claimed randomized response best, None without."""
    # A slip computes the probability wrongly: the ε that comes out, in nats, and its words.
    if channel.outputs != channel.classes or not 0 < channel.epsilon < math.inf:
        return None
    claimed = RandomizedResponse.from_epsilon(channel.classes, channel.epsilon)
    if not np.allclose(claimed.channel.matrix, channel.matrix, atol=1e-9):
        return None
    sizes, fitting = counts.sum(axis=1), {}
    for epsilon, words in _slips(channel.epsilon, claimed.noise, len(channel.classes)):
        matrix = RandomizedResponse.from_epsilon(channel.classes, epsilon).channel.matrix
        if agrees(counts, matrix):
            fitting[epsilon, words] = abs(float(sizes @ matrix.diagonal()) - np.trace(counts))
    return min(fitting, key=fitting.__getitem__, default=None)


def _slips(epsilon: float, noise: float, k: int) -> list[tuple[float, str]]:
    """Return the slips of randomized response with that ε and λ on k labels."""
    two = f"the formula for two labels, e^ε/(1 + e^ε), is used for {k} labels"
    redrawn = (
        (
            noise * (k - 1) / k,
            "the chance of a changed label is used as λ, the chance of a redraw",
        ),
        (1 - noise, "λ and 1 − λ are exchanged"),
        (math.exp(-epsilon), "λ is computed as e^−ε"),
        (1 - (1 - noise) ** 2, "the noise is applied twice"),
        (noise * k / (k - 1), "λ, the chance of a redraw, is used as that of a changed label"),
    )
    return [
        *([(epsilon + math.log(k - 1), two)] if k > 2 else []),
        *((math.log1p(k * (1 - p) / p), words) for p, words in redrawn if 0 < p < 1),
        (2 * epsilon, "ε is doubled"),
        (epsilon / 2, "ε is halved"),
        (epsilon * math.log(10), "powers of 10 are taken in place of powers of e"),
        (epsilon * math.log(2), "powers of 2 are taken in place of powers of e"),
    ]


def unlike_the_claim(counts: IndexArray, channel: FloatArray, level: float = _DIFFERS) -> BoolArray:
    """Return which true labels' rows speak against a claimed channel, bool of shape (k,)."""
    # Exact binomial tests of all entries, Bonferroni: at that level an honest release has any.
    sizes = counts.sum(axis=1, keepdims=True)
    p_values = binomial_p_value(counts, sizes, channel)
    return np.asarray((p_values * p_values.size <= level).any(axis=1) & (sizes[:, 0] > 0))
