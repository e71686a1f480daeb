"""The reference without the release: what the features alone reveal."""

import numpy as np

from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.truth import truth_model
from ldpaudit.release import Release


class FeaturesOnlyAttack(ModelAttack):
    """A model of P(y | x) learnt from other people's true labels; sees no released label.

    An attack that does no better has learnt nothing from the release about the people in it (Wu et
    al. 2023, label-independent attack utility).
    """

    name = "features-only"
    title = "Features only, no release"
    needs: frozenset[Need] = frozenset({"truth"})
    uses_release = False

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the model of the true labels, fitted once for all attacks."""
        return truth_model(self.knowledge, release)
