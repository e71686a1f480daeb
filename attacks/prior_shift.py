"""The attacker whose population has other class frequencies than the release."""

import numpy as np

from ldpaudit.attacks.costs import Parts, Size
from ldpaudit.attacks.interface import Knowledge, Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.counts import clean_prior
from ldpaudit.attacks.models.noise_aware import noise_aware_cost, noise_aware_model
from ldpaudit.release import FeatureTable, FloatArray, Release


class PriorShiftAttack(ModelAttack):
    """``bayes`` for an attacker to whom every class is equally likely beforehand.

    P(y | x, ỹ) ∝ P(y | x)/p_y · q_y · P(ỹ | y, x), with q the attacker's prior in place of the
    release's p. With uniform q no attack has a higher balanced accuracy, where P(y | x) is right:
    it finds people of rare classes whom ``bayes`` gives up to the majority.
    """

    name = "prior-shift"
    title = "Another prior (Bayes)"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})
    uses_own_label = True

    def __init__(self, knowledge: Knowledge, prior: FloatArray | None = None) -> None:
        super().__init__(knowledge)
        self.prior = prior
        """The attacker's q, float64 of shape (k,); None: uniform."""

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the noise-aware model under the attacker's prior."""
        k = len(release.classes)
        wanted = np.full(k, 1.0 / k) if self.prior is None else self.prior
        own = clean_prior(release.released, self.knowledge.transition(release))
        return ShiftedModel(noise_aware_model(self.knowledge, release), wanted / own)

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        return noise_aware_cost(size)


class ShiftedModel:
    """P(y | x) of one population, led over to another with the same P(x | y)."""

    def __init__(self, model: Model, ratio: FloatArray) -> None:
        self.model, self.ratio = model, ratio

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x) under the other class frequencies, float64 of shape (n, k)."""
        joint = self.model.predict(features) * self.ratio
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))
