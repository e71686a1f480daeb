"""The attack that combines features and released label by Bayes' rule."""

from typing import Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Need, SharedModel, condition_on_released
from ldpaudit.attacks.noise_aware import noise_aware_model
from ldpaudit.release import FloatArray, Release


class BayesAttack:
    """P(y | x, ỹ) ∝ P(y | x) T[y, ỹ] with P(y | x) learnt from released labels alone.

    Everything it knows is public: the release and its declaration. With the exact P(y | x) no
    attack guesses better (Busa-Fekete et al. 2024).
    """

    name = "bayes"
    needs: frozenset[Need] = frozenset({"channel", "features"})
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
        """Return P(y | x, ỹ), float64 of shape (n, k)."""
        assert self.model is not None
        transition = self.knowledge.transition(release)
        return condition_on_released(self.model.predict(release.features), transition, release)
