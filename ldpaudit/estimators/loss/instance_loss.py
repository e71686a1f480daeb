"""The instance-based privacy loss ν: how much one released row says about one person's label.

ν(y, z, x) is the log-odds of "the true label is y" given the features x and the released label z,
minus the log-odds of y before the release. All losses are in nats. Without a channel only the
features' part remains: what x alone says.

References
----------
Busa-Fekete, Muñoz Medina, Syed, Vassilvitskii (2023), "Label differential privacy and private
training data release", section 6 and appendix D. Two statements are corrected here: the first
denominator of Eq. (2) is P(z | 1 − y), and H is symmetric around 1/2 only when p₊ = 1/2, so it is
least at :attr:`BinaryLoss.minimizer`, not at 1/2.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, rel_entr

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, IntArray

_BATCH_CELLS = 4_000_000


@dataclass(frozen=True)
class BinaryLoss:
    """H: the averaged loss ν(x) of a binary label as a function of z = η(x) = P(Y = 1 | x).

    H(z) = (2z − 1)(logit z − logit p₊) + z·a + (1 − z)·b, with a = KL(T₁‖T₀) and b = KL(T₀‖T₁)
    for any channel T with two rows; symmetric flips π have a = b = (1 − 2π) log((1 − π)/π).

    Parameters
    ----------
    prior : float
        p₊ = P(Y = 1) in (0, 1).
    forward, backward : float
        a and b in nats, at least 0; infinite where an output betrays the label.
    """

    prior: float
    forward: float = 0.0
    backward: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.prior < 1:
            raise InputError(f"The 'prior' parameter must lie in (0, 1). Got {self.prior!r}.")

    @classmethod
    def of_channel(cls, prior: float, channel: FloatArray | None) -> "BinaryLoss":
        """Build it for a channel, float64 of shape (2, m); None leaves the features' part."""
        if channel is None:
            return cls(prior)
        zero, one = np.asarray(channel, dtype=np.float64)
        return cls(prior, float(rel_entr(one, zero).sum()), float(rel_entr(zero, one).sum()))

    def value(self, posterior: FloatArray) -> FloatArray:
        """Return H for float64 posteriors in [0, 1] of any shape; infinite at 0 and 1.

        References
        ----------
        Lemma D.1, for any channel.
        """
        z = np.asarray(posterior, dtype=np.float64)
        inner = (z > 0) & (z < 1)
        z = np.where(inner, z, 0.5)
        features = (2 * z - 1) * (logit(z) - logit(self.prior))
        return np.where(inner, features + z * self.forward + (1 - z) * self.backward, np.inf)

    @cached_property
    def minimizer(self) -> float:
        """z*, where H is least: between 1/2 and p₊ when a = b.

        In t = logit z the derivative of H is 2(t − logit p₊) + 2 sinh t + a − b.
        """
        if math.isinf(self.forward) or math.isinf(self.backward):
            return 0.5
        tilt = self.forward - self.backward - 2 * float(logit(self.prior))

        def slope(t: float) -> float:
            return 2 * t + 2 * math.sinh(t) + tilt

        reach = math.asinh(abs(tilt) / 2) + 1
        return float(expit(brentq(slope, -reach, reach, xtol=1e-14)))


def mean_loss(posterior: FloatArray, prior: FloatArray, channel: FloatArray | None) -> FloatArray:
    """Return ν(x) = E[ν(Y, Z, x) | x] for each posterior, in nats.

    Parameters
    ----------
    posterior : float64 array of shape (n, k)
        η(x), rows summing to 1.
    prior : float64 array of shape (k,)
        P(Y = y), positive.
    channel : float64 array of shape (k, m) or None
        P(z | y), the same for all x; None for the features' part alone.

    Returns
    -------
    float64 array of shape (n,)
        For two labels H(η₁), the paper's definition. For more, ν(y, z, x) is one-versus-rest (the
        log-odds of y against all other labels together) and averaged over Y and Z given x. Infinite
        where a label is certain.
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    if posterior.shape[1] == 2:
        return BinaryLoss.of_channel(float(prior[1] / prior.sum()), channel).value(posterior[:, 1])
    return versus_rest(posterior, channel) - posterior @ logit(np.asarray(prior))


def versus_rest(posterior: FloatArray, channel: FloatArray | None) -> FloatArray:
    """Return Σ_y Σ_z η_y T[y,z] log(η_y T[y,z] / Σ_{j≠y} η_j T[j,z]), float64 of shape (n,).

    The averaged loss before the prior log-odds are taken off. As a sum of terms a log(a/b) with a
    and b linear in η it is convex.
    """
    k = posterior.shape[1]
    matrix = np.ones((k, 1)) if channel is None else np.asarray(channel, dtype=np.float64)
    result = np.zeros(len(posterior))
    batch = max(1, _BATCH_CELLS // matrix.shape[1])
    for start in range(0, len(posterior), batch):
        part = posterior[start : start + batch]
        for y in range(k):
            others = np.delete(part, y, axis=1) @ np.delete(matrix, y, axis=0)
            result[start : start + batch] += rel_entr(part[:, y, None] * matrix[y], others).sum(1)
    return result


def row_loss(
    posterior: FloatArray,
    labels: IntArray,
    released: IntArray,
    prior: FloatArray,
    channel: FloatArray | None,
) -> FloatArray:
    """Return ν(y_i, z_i, x_i) for each row, in nats.

    Parameters
    ----------
    posterior : float64 array of shape (n, k)
        η(x_i).
    labels, released : int32 arrays of shape (n,)
        True label y_i and released label z_i; ``released`` is not looked at without a channel.
    prior : float64 array of shape (k,)
    channel : float64 array of shape (k, m) or None

    Returns
    -------
    float64 array of shape (n,)
        log η_y T[y,z] − log Σ_{j≠y} η_j T[j,z] − logit p_y; for two labels Theorem 6.4 (with its
        misprint corrected). Infinite where (x, z) leave one label only.
    """
    rows = np.arange(len(posterior))
    weights = np.array(posterior, dtype=np.float64)
    if channel is not None:
        weights *= np.asarray(channel, dtype=np.float64).T[released]
    weight = weights[rows, labels]
    weights[rows, labels] = 0
    with np.errstate(divide="ignore"):
        odds = np.log(weight) - np.log(weights.sum(axis=1))
    return np.asarray(odds - logit(np.asarray(prior))[labels])


def features_mean(posterior: FloatArray, prior: FloatArray) -> float:
    """Return the features' part of E[ν]: the mean of ν(x) without a channel, in nats."""
    return float(mean_loss(posterior, prior, None).mean())


def label_mean(prior: FloatArray, channel: FloatArray) -> float:
    """Return the label's part of E[ν], that of a release with no features, in nats.

    Σ_y p_y KL(T_y ‖ T_{¬y}), T_{¬y} being the channel's mixture over all other labels. Exact for a
    given prior. For two labels E[ν] is the sum of both parts; for more it is at least each of them.
    """
    p = np.asarray(prior, dtype=np.float64)
    joint = p[:, None] * np.asarray(channel, dtype=np.float64)
    others = (joint.sum(axis=0) - joint) / (1 - p)[:, None]
    divergences = rel_entr(joint / p[:, None], np.maximum(others, 0)).sum(axis=1)
    return float(p @ divergences)
