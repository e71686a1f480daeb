"""The attacker whose population has other class frequencies than the release."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.attacks.bayes import BayesAttack
from ldpaudit.attacks.interface import Knowledge, Model, Need
from ldpaudit.attacks.models.counts import clean_prior
from ldpaudit.release import FeatureTable, FloatArray, Release


class PriorShiftAttack(BayesAttack):
    """``bayes`` for an attacker to whom every class is equally likely beforehand.

    P(y | x, ỹ) ∝ P(y | x)/p_y · q_y · P(ỹ | y, x), with q the attacker's prior in place of the
    release's p. With uniform q and the exact P(y | x) no attack has a higher balanced accuracy: it
    finds people of rare classes whom ``bayes`` assigns to the majority.
    """

    name = "prior-shift"
    title = "Another prior (Bayes)"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})

    def __init__(self, knowledge: Knowledge, prior: FloatArray | None = None) -> None:
        super().__init__(knowledge)
        self.prior = prior
        """The attacker's q, float64 of shape (k,); None: uniform."""

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Return the noise-aware model under the attacker's prior."""
        k = len(release.classes)
        prior = np.full(k, 1.0 / k) if self.prior is None else self.prior
        observed = clean_prior(release.released, self.knowledge.transition(release))
        return ShiftedModel(super().learn(release, rng), prior / observed)


@dataclass(frozen=True)
class ShiftedModel:
    """P(y | x) of one population, transferred to another with the same P(x | y)."""

    model: Model
    ratio: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x) under the other class frequencies, float64 of shape (n, k)."""
        joint = self.model.predict(features) * self.ratio
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))
