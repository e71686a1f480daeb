"""The reference that looks at nobody: guess the most frequent label."""

from typing import Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Need
from ldpaudit.attacks.label_counts import clean_prior
from ldpaudit.release import FloatArray, Release


class PriorAttack:
    """Guesses the class that is most frequent according to the released labels."""

    name = "prior"
    needs: frozenset[Need] = frozenset({"same-labels"})
    uses_release = False
    most_rows = None

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.prior: FloatArray | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:  # noqa: ARG002
        """Estimate the class frequencies through the channel."""
        self.prior = clean_prior(release.released, self.knowledge.transition(release))
        return self

    def posterior(self, release: Release) -> FloatArray:
        """Return the class frequencies for every row."""
        assert self.prior is not None
        return np.tile(self.prior, (len(release), 1))
