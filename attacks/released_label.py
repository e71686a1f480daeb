"""The attack that believes the released label as far as the channel allows."""

from typing import Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Need, condition_on_released
from ldpaudit.attacks.label_counts import clean_prior
from ldpaudit.release import FloatArray, Release

_TRUST = 0.5


class ReleasedLabelAttack:
    """Maximum a posteriori under the channel and the class frequencies; sees no features.

    Without a declared channel it takes the released label at its word.
    """

    name = "released-label"
    needs: frozenset[Need] = frozenset({"same-labels"})
    uses_release = True
    most_rows = None

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.prior: FloatArray | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:  # noqa: ARG002
        """Estimate the class frequencies through the channel."""
        self.prior = clean_prior(release.released, self.knowledge.transition(release))
        return self

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | ỹ), float64 of shape (n, k)."""
        assert self.prior is not None
        transition = self.knowledge.transition(release)
        if self.knowledge.channel is None:
            transition = (1 - _TRUST) / len(transition) + _TRUST * transition
            prior = np.full(len(transition), 1.0 / len(transition))
        else:
            prior = self.prior
        everyone = np.tile(prior, (len(release), 1))
        return condition_on_released(everyone, transition, release)
