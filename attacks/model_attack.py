"""Most attacks: a model of P(y | x), alone or with each person's released label."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

import numpy as np

from ldpaudit.attacks.costs import Parts, Price, Size
from ldpaudit.attacks.interface import Knowledge, Model, Need, conditioned
from ldpaudit.release import FloatArray, Release


class ModelAttack:
    """Guesses by a model of P(y | x); if ``uses_own_label``, by P(y | x) P(ỹ | y, x).

    A subclass states its name, title and needs, and learns the model.
    """

    name: str
    title: str
    needs: frozenset[Need]
    uses_release = True
    uses_own_label = False
    learns_from_asked = False
    most_rows: int | None = None
    prices: Mapping[str, Price] = MappingProxyType({})
    """By part, what the attack costs."""
    transition: FloatArray | None = None
    """The T[y, ỹ] that the attack estimates itself, float64 of shape (k, m); None: it does not."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.model: Model | None = None

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Return the model learnt from these rows."""
        raise NotImplementedError

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Learn the model, or take the one of another attack."""
        self.model = self.learn(release, rng)
        return self

    def likelihood(self, release: Release) -> FloatArray | None:
        """Return P(ỹ | y, x), float64 of shape (n, k); None where ỹ is not used."""
        if self.transition is not None:
            return np.asarray(self.transition.T[release.released])
        known = self.uses_own_label and self.knowledge.knows_channel(release)
        return self.knowledge.likelihood(release) if known else None

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | what the attack sees), float64 of shape (n, k)."""
        assert self.model is not None
        posterior = self.model.predict(release.features)
        likelihood = self.likelihood(release)
        return posterior if likelihood is None else conditioned(posterior, likelihood)

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part; parts of the same name are shared by attacks."""
        return {part: price.seconds(size) for part, price in self.prices.items()}
