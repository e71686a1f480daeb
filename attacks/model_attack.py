"""Most attacks: a model of P(y | x), alone or with each person's released label."""

from typing import Final, Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Model, Need, SharedModel
from ldpaudit.models.corrections import conditioned
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.models.row_channels import fit_row_channels
from ldpaudit.release import FloatArray, Release

# Where an audit stores the model of the true labels that it has fitted.
TRUTH_MODEL: Final = "truth"


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
    # The T[y, ỹ] that the attack estimates itself, float64 of shape (k, m); None: it does not.
    transition: FloatArray | None = None

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


def truth_model(knowledge: Knowledge, release: Release) -> SharedModel:
    """Return P(y | x), learnt from features and true labels once for each fold."""

    def build(rng: np.random.Generator) -> SharedModel:
        assert release.truth is not None
        k = len(release.classes)
        model = fit_posterior(release.features, release.truth, k, rng, knowledge.threads)
        return SharedModel(model)

    return knowledge.once(TRUTH_MODEL, build)


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

    return knowledge.once("noise-aware", build)
