"""The model of the true label that several attacks learn from released labels."""

from typing import Final

import numpy as np

from ldpaudit.attacks.costs import Price
from ldpaudit.attacks.interface import Knowledge, SharedModel
from ldpaudit.attacks.models.posterior import fit_posterior
from ldpaudit.attacks.models.row_channel import fit_row_channels
from ldpaudit.release import Release

SHARED_KEY = "noise-aware"
"""The name by which the model is shared and its cost counted."""
PRICE: Final = Price(fixed=0.5, each=1.3, most=6.0)
"""With the scores of one attack."""


def noise_aware_model(knowledge: Knowledge, release: Release) -> SharedModel:
    """Return P(y | x) of the true label, learnt from features and released labels.

    Corrected by the declared channel, or by each row's own where it is known; without either the
    released labels are taken as true. Fitted once for each fold.
    """

    def build(rng: np.random.Generator) -> SharedModel:
        knowledge.progress.step("fitting a noise-aware model")
        channel, features, codes = knowledge.channel, release.features, release.released
        if channel is None and knowledge.knows_channel(release):
            return SharedModel(fit_row_channels(features, knowledge.likelihood(release), rng))
        n_labels = len(release.classes) if channel is None else len(release.outputs)
        threads = knowledge.threads
        return SharedModel(fit_posterior(features, codes, n_labels, rng, threads, channel))

    return knowledge.once(SHARED_KEY, build)
