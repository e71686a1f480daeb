"""The attack that combines features and released label by Bayes' rule."""

import numpy as np

from ldpaudit.attacks.costs import Parts, Size
from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.noise_aware import noise_aware_cost, noise_aware_model
from ldpaudit.release import Release


class BayesAttack(ModelAttack):
    """P(y | x, ỹ) ∝ P(y | x) P(ỹ | y, x) with P(y | x) learnt from released labels alone.

    Everything it knows is public: the release and its declaration, for model-based randomized
    response also the public model. With the exact P(y | x) no attack guesses better (Busa-Fekete
    et al. 2024).
    """

    name = "bayes"
    title = "Classifier and channel (Bayes)"
    needs: frozenset[Need] = frozenset({"row-channel", "features"})
    uses_own_label = True

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the noise-aware model, fitted once for all attacks."""
        return noise_aware_model(self.knowledge, release)

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        return noise_aware_cost(size)
