"""The attacker who knows how labels depend on features, and how the mechanism really behaves."""

from typing import Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Need, SharedModel, condition_on_released
from ldpaudit.attacks.label_counts import measured_channel
from ldpaudit.attacks.truth_model import truth_model
from ldpaudit.release import FloatArray, Release


class OracleAttack:
    """P(y | x, ỹ) ∝ P(y | x) T[y, ỹ], both factors learnt from true labels of other people.

    The informed attacker of Busa-Fekete et al. (2024): it starts from the same P(y | x) as the
    features-only reference, so the difference of the two is the additive advantage of the release.
    Since it counts the channel instead of believing the claim, it also finds what a release gives
    away beyond its claim.
    """

    name = "oracle"
    needs: frozenset[Need] = frozenset({"truth"})
    uses_release = True
    most_rows = None

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.model: SharedModel | None = None
        self.transition: FloatArray | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:  # noqa: ARG002
        """Fit the model of the true labels, and count the channel."""
        assert release.truth is not None
        claimed = None if self.knowledge.channel is None else self.knowledge.channel.matrix
        shape = (len(release.classes), len(release.outputs))
        self.transition = measured_channel(release.truth, release.released, shape, claimed)
        self.model = truth_model(self.knowledge, release)
        return self

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | x, ỹ), float64 of shape (n, k)."""
        assert self.model is not None
        assert self.transition is not None
        return condition_on_released(self.model.predict(release.features), self.transition, release)
