"""The model of the true label that several attacks learn from released labels."""

import numpy as np

from ldpaudit.attacks.interface import Knowledge, SharedModel
from ldpaudit.attacks.posterior_model import fit_posterior
from ldpaudit.release import Release


def noise_aware_model(knowledge: Knowledge, release: Release) -> SharedModel:
    """Return P(y | x) of the true label as learnt from features and released labels.

    Corrected by the declared channel; without one the released labels are taken at their word.
    Fitted once for each fold.
    """

    def build(rng: np.random.Generator) -> SharedModel:
        knowledge.progress.step("fitting a noise-aware model")
        channel = knowledge.channel
        n_labels = len(release.classes) if channel is None else len(release.outputs)
        model = fit_posterior(
            release.features,
            release.released,
            n_labels,
            rng,
            knowledge.threads,
            channel=channel,
        )
        return SharedModel(model)

    return knowledge.once("noise-aware", build)
