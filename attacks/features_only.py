"""The reference that has no release: what the features give away by themselves."""

from typing import Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Need, SharedModel
from ldpaudit.attacks.truth_model import truth_model
from ldpaudit.release import FloatArray, Release


class FeaturesOnlyAttack:
    """A model of P(y | x) learnt from true labels of other people; sees no released label.

    An attack that does no better than this has learnt nothing from the release about the people
    in it (Wu et al. 2023, label-independent attack utility).
    """

    name = "features-only"
    needs: frozenset[Need] = frozenset({"truth"})
    uses_release = False
    most_rows = None

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.model: SharedModel | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:  # noqa: ARG002
        """Fit the model of the true labels, or take the one already fitted."""
        self.model = truth_model(self.knowledge, release)
        return self

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k)."""
        assert self.model is not None
        return self.model.predict(release.features)
