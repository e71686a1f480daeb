"""Certified evidence about model-based randomized response whose public model is at hand.

A released label differs from the true one only where it was drawn anew, and then with the
probability 1 − P̂(y | x) that the model says: the rows that differ bound λ from above, and with it ε
from below. That needs neither equal rows nor canaries, but the declared family: whoever is not
willing to assume it gets the other two kinds of evidence.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom

from ldpaudit.audits.claimed_channel import model_claim
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.observational.evidence import Certificate
from ldpaudit.estimators.epsilon.matched.power import ModelBasedFamily
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.release import BoolArray, FloatArray

DECLARED_FAMILY: Final = (
    "a released label is the true one or was drawn from the public model given, with one λ for all "
    "rows"
)
_PARTS: Final = 4
_DOUBT: Final = 0.001


@dataclass(frozen=True)
class ModelEvidence:
    """How many released labels differ from the true ones, and how many would if all were drawn.

    Attributes
    ----------
    rows : int
        n.
    changed : int
        Rows whose released label is not the true one.
    drawn_otherwise : float
        The mean over rows of the model's probability of another label than the true one, floor
        included; above 0.
    floor : float
        The claimed floor f > 0.
    """

    rows: int
    changed: int
    drawn_otherwise: float
    floor: float
    name: str = "public-model"
    title: str = "the public model"

    def bound(self, alpha: float) -> Certificate:
        """Return the bound at a one-sided error probability, in nats.

        Changes are independent, row i's with probability λ(1 − P̂(y_i | x_i)): the upper bound of
        their mean (Hoeffding 1956, Theorem 5) divided by the mean at λ = 1 is one of λ.
        """
        share = float(trials_upper(self.changed, self.rows, alpha))
        noise = min(share / self.drawn_otherwise, 1.0)
        epsilon = math.log1p((1 - noise) / (noise * self.floor)) if noise > 0 else math.inf
        words = "released labels that differ from the true ones against the public model"
        return Certificate(epsilon, self.rows, words, DECLARED_FAMILY)

    def power(self, epsilon: float, limit: float, alpha: float) -> float:
        """Return the probability that a release at ``epsilon`` is found to exceed ``limit``.

        In nats; from the binomial distribution, which spreads at least as far as the changes do.
        """
        family = ModelBasedFamily(self.floor)
        allowed = family.noise(limit) * self.drawn_otherwise
        low, high = -1, self.rows
        while high - low > 1:  # The largest count whose upper bound lies below the allowed share.
            middle = (low + high) // 2
            below = float(trials_upper(middle, self.rows, alpha)) < allowed
            low, high = (middle, high) if below else (low, middle)
        if low < 0:
            return 0.0
        return float(binom.cdf(low, self.rows, family.noise(epsilon) * self.drawn_otherwise))


def model_evidence(context: AuditContext) -> ModelEvidence | None:
    """Return the evidence, None without a model-based claim of finite ε and its public model."""
    return context.once("observational.model", lambda: _count(context))


def _count(context: AuditContext) -> ModelEvidence | None:
    claim, known = model_claim(context), context.release.public_posterior
    if claim is None or known is None or claim.floor <= 0:
        return None
    truth, n = context.truth, len(context.release)
    own = claim.floor + (1 - len(claim.classes) * claim.floor) * known[np.arange(n), truth]
    changed = context.release.released != truth
    if not _agrees(1 - own, changed):
        return None
    return ModelEvidence(n, int(changed.sum()), float(np.mean(1 - own)), claim.floor)


def _agrees(otherwise: FloatArray, changed: BoolArray) -> bool:
    """Return whether one λ fits rows that the model is sure of and rows that it is not.

    A wrong model makes too few changes where it should make many, or the other way round.
    """
    if len(changed) < _PARTS or otherwise.mean() <= 0:
        return False
    low, high = [], []
    for rows in np.array_split(np.argsort(otherwise, kind="stable"), _PARTS):
        count, mean = int(changed[rows].sum()), float(otherwise[rows].mean())
        low.append(float(trials_lower(count, len(rows), _DOUBT)) / max(mean, 1e-12))
        high.append(float(trials_upper(count, len(rows), _DOUBT)) / max(mean, 1e-12))
    return max(low) <= min(high)
