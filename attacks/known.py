"""Attackers who know class frequencies, channel or true labels: two references and two attacks."""

from typing import Final

import numpy as np

from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack, truth_model
from ldpaudit.models.counts import Frequencies, clean_prior, measured_channel
from ldpaudit.release import FloatArray, Release

_TRUST: Final = 0.5


class PriorAttack(ModelAttack):
    """The reference that guesses the most frequent class, according to the released labels."""

    name = "prior"
    title = "Majority guess"
    needs: frozenset[Need] = frozenset({"same-labels"})
    uses_release = False

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Estimate the class frequencies through the channel."""
        return Frequencies(clean_prior(release.released, self.knowledge.transition(release)))


class FeaturesOnlyAttack(ModelAttack):
    """The reference without the release: P(y | x) learnt from other people's true labels.

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


class OracleAttack(ModelAttack):
    """P(y | x, ỹ) ∝ P(y | x) T[y, ỹ], both factors learnt from true labels of other people.

    The informed attacker of Busa-Fekete et al. (2024): it uses the same P(y | x) as the
    features-only reference, so the difference of the two is the additive advantage of the release.
    Since it counts the channel instead of trusting the claim, it also finds what a release reveals
    beyond its claim.
    """

    name = "oracle"
    title = "Oracle (true model, channel)"
    needs: frozenset[Need] = frozenset({"truth"})
    uses_own_label = True

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the model of the true labels; count the channel, unless each row has its own."""
        assert release.truth is not None
        claimed = None if self.knowledge.channel is None else self.knowledge.channel.matrix
        if claimed is not None or not self.knowledge.knows_channel(release):
            shape = (len(release.classes), len(release.outputs))
            self.transition = measured_channel(release.truth, release.released, shape, claimed)
        return truth_model(self.knowledge, release)
