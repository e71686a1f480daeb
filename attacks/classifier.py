"""The attack that learns from released labels and then looks at the features alone."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ldpaudit.attacks.costs import Price
from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.noise_aware import PRICE, SHARED_KEY, noise_aware_model
from ldpaudit.release import Release


class ClassifierAttack(ModelAttack):
    """A model of P(y | x) learnt from released labels, corrected for the channel.

    Each row's own released label is not used: what this attack finds, the release reveals about
    people whose label was never released.
    """

    name = "classifier"
    title = "Noise-aware classifier"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})
    prices: Mapping[str, Price] = MappingProxyType({SHARED_KEY: PRICE})

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the noise-aware model, fitted once for all attacks."""
        return noise_aware_model(self.knowledge, release)
