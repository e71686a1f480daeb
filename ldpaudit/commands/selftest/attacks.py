"""What the best attack on a planted release can reach, computed from how its people are drawn."""

from dataclasses import replace
from functools import cache

import numpy as np

from ldpaudit.commands.selftest.people import centres, people, shares
from ldpaudit.commands.selftest.planted import Setting
from ldpaudit.commands.selftest.stated import mechanism
from ldpaudit.release import FloatArray

LARGEST = 1500
"""The most rows of releases that are attacked: attacks take longer than all else."""
_DRAWN = 20_000
_DOUBT = 5 * 0.5 / np.sqrt(_DRAWN)
"""Five standard deviations of an accuracy that is measured on so many drawn people."""


def attacked(setting: Setting) -> bool:
    """Return whether label inference is audited, too: where the best attack is known."""
    plain = setting.kind == "as declared" and setting.mechanism == "randomized-response"
    return plain and setting.truth and setting.rows <= LARGEST


def to_attack(setting: Setting) -> Setting:
    """Return the setting changed so that label inference is audited, and no count is hidden."""
    few = replace(setting, classes=min(setting.classes, 3), epsilon=min(setting.epsilon, 2.0))
    name = "randomized-response"
    return replace(few, kind="as declared", mechanism=name, truth=True, rows=LARGEST)


@cache
def best_accuracy(k: int, epsilon: float) -> float:
    """Return an accuracy that no attack on randomized response exceeds, up to five in 10⁷.

    The attacker knows how people are drawn, and sees features and released label:
    E[Σ_z max_y P(y | x) P(z | y)] over drawn people x.
    """
    channel = mechanism("randomized-response", k, epsilon).label_channel
    assert channel is not None
    chances = posterior(k)
    right = np.max(chances[:, :, None] * channel.matrix[None], axis=1).sum(axis=1)
    return float(right.mean() + _DOUBT)


@cache
def posterior(k: int) -> FloatArray:
    """Return P(y | x) of drawn people, float64 of shape (20000, k)."""
    from scipy.stats import norm

    drawn = people(_DRAWN, k, np.random.default_rng(k)).frame
    measured = drawn[["x0", "x1", "x2", "x3"]].to_numpy(np.float64)
    years = drawn["education"].to_numpy(np.float64)
    logs = np.log(shares(k)) - ((measured[:, None] - centres(k)) ** 2).sum(axis=2) / 2
    # Years of school are rounded, and clipped to 5 and 20.
    low = np.where(years == 5, -np.inf, years - 0.5)[:, None]
    high = np.where(years == 20, np.inf, years + 0.5)[:, None]
    mean = 12 + np.arange(k) / 2
    logs += np.log(norm.cdf((high - mean) / 3) - norm.cdf((low - mean) / 3))
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
