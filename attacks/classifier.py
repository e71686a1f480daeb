"""The attack that learns from released labels and then looks at the features alone."""

from typing import Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Need, SharedModel
from ldpaudit.attacks.noise_aware import noise_aware_model
from ldpaudit.release import FloatArray, Release


class ClassifierAttack:
    """A model of P(y | x) learnt from released labels, corrected for the channel.

    Each row's own released label is not used: what this attack finds, the release gives away
    about people whose label was never released.
    """

    name = "classifier"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})
    uses_release = True
    most_rows = None

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.model: SharedModel | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:  # noqa: ARG002
        """Fit the noise-aware model, or take the one that another attack fitted."""
        self.model = noise_aware_model(self.knowledge, release)
        return self

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k)."""
        assert self.model is not None
        return self.model.predict(release.features)
