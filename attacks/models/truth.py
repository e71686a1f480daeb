"""The model of the true label that references learn from true labels of other people."""

import numpy as np

from ldpaudit.attacks.interface import Knowledge, SharedModel
from ldpaudit.attacks.models.posterior import fit_posterior
from ldpaudit.release import Release

SHARED_KEY = "truth"
"""Where an audit stores the model that it has fitted."""


def truth_model(knowledge: Knowledge, release: Release) -> SharedModel:
    """Return P(y | x), learnt from features and true labels once for each fold."""

    def build(rng: np.random.Generator) -> SharedModel:
        assert release.truth is not None
        k = len(release.classes)
        model = fit_posterior(release.features, release.truth, k, rng, knowledge.threads)
        return SharedModel(model)

    return knowledge.once(SHARED_KEY, build)
