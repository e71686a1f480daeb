"""The attacker who knows how labels depend on features, and how the mechanism really behaves."""

import numpy as np

from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.counts import measured_channel
from ldpaudit.attacks.models.truth import truth_model
from ldpaudit.release import Release


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
