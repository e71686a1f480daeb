"""The attack that trusts the released label as far as the channel allows."""

import numpy as np

from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.counts import Frequencies, clean_prior
from ldpaudit.release import FloatArray, Release

_TRUST = 0.5


class ReleasedLabelAttack(ModelAttack):
    """Maximum a posteriori under the channel and the class frequencies; sees no features.

    Without a declared channel it takes the released label as true.
    """

    name = "released-label"
    title = "Believing the released label"
    needs: frozenset[Need] = frozenset({"same-labels"})
    uses_own_label = True

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Estimate the class frequencies through the channel; without one they are uniform."""
        k = len(release.classes)
        if self.knowledge.channel is None:
            return Frequencies(np.full(k, 1.0 / k))
        return Frequencies(clean_prior(release.released, self.knowledge.transition(release)))

    def likelihood(self, release: Release) -> FloatArray:
        """Return P(ỹ | y), float64 of shape (n, k); without a channel labels are half trusted."""
        transition = self.knowledge.transition(release)
        if self.knowledge.channel is None:
            transition = (1 - _TRUST) / len(transition) + _TRUST * transition
        return np.asarray(transition.T[release.released])
