"""The reference that guesses the most frequent label for everybody."""

import numpy as np

from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.counts import Frequencies, clean_prior
from ldpaudit.release import Release


class PriorAttack(ModelAttack):
    """Guesses the class that is most frequent according to the released labels."""

    name = "prior"
    title = "Majority guess"
    needs: frozenset[Need] = frozenset({"same-labels"})
    uses_release = False

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Estimate the class frequencies through the channel."""
        return Frequencies(clean_prior(release.released, self.knowledge.transition(release)))
