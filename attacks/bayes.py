"""Attackers who learn P(y | x) from released labels alone, and combine it with their own label."""

from typing import Final, Self

import numpy as np

from ldpaudit.attacks.interface import Model, Need, SharedModel
from ldpaudit.attacks.model_attack import ModelAttack, noise_aware_model
from ldpaudit.errors import InputError
from ldpaudit.models.corrections import conditioned
from ldpaudit.models.label_model import PosteriorModel, fit_posterior
from ldpaudit.randomness import child_generator
from ldpaudit.release import FloatArray, Release

# Rows × columns × labels of a half up to which a model of more rows is chosen again …
_SMALL: Final = 1e5
# … up to which rows are guessed in four parts, each by a model of all others; else in two …
_MIDDLE: Final = 5e5
# … and beyond which half of the rows teach as much, to within 0.2 points.
_ENOUGH: Final = 2e6


class ClassifierAttack(ModelAttack):
    """A model of P(y | x) learnt from released labels, corrected for the channel.

    Each row's own released label is not used: what this attack finds, the release reveals about
    people whose label was never released.
    """

    name = "classifier"
    title = "Noise-aware classifier"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the noise-aware model, fitted once for all attacks."""
        return noise_aware_model(self.knowledge, release)


class BayesAttack(ClassifierAttack):
    """P(y | x, ỹ) ∝ P(y | x) P(ỹ | y, x) with P(y | x) learnt from released labels alone.

    All it knows is public: the release and its declaration, for model-based randomized response
    also the public model. With the exact P(y | x) no attack guesses better (Busa-Fekete et al.
    2024).
    """

    name = "bayes"
    title = "Classifier and channel (Bayes)"
    needs: frozenset[Need] = frozenset({"row-channel", "features"})
    uses_own_label = True


class WholeReleaseAttack(BayesAttack):
    """``bayes`` learnt from every released row but those of the row's own part.

    An attacker has the whole release. The rows to guess are cut into parts, and each part's
    P(y | x) is learnt from the fitted rows and the released labels of the other parts: seven
    eighths of the release instead of a half, three quarters where rows are many. A row's own
    released label enters through the channel alone; a model that had seen it would count it twice.
    """

    name = "bayes-whole-release"
    title = "Whole release, channel (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "features"})
    learns_from_asked = True
    seen: Release | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Keep the rows, and use the model that ``bayes`` learns from them as the recipe."""
        if _work(release) > _ENOUGH:
            raise InputError("half of so many rows teach as much as all: see 'bayes'")
        self.seen = release
        return super().fit(release, rng)

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | what is released), float64 of shape (n, k)."""
        assert self.seen is not None
        assert isinstance(self.model, SharedModel)
        before, n, work = len(self.seen), len(release), _work(self.seen)
        k, threads = len(release.classes), self.knowledge.threads
        like = self.model.model if work > _SMALL else None
        assert like is None or isinstance(like, PosteriorModel)
        everyone = self.seen.followed_by(release)
        parts = 4 if work <= _MIDDLE else 2
        part = child_generator(self.knowledge.seed, self.name).permutation(n) % parts
        posterior = np.empty((n, k))
        for number in range(min(parts, n)):
            asked, others = np.flatnonzero(part == number), np.flatnonzero(part != number)
            rng = child_generator(self.knowledge.seed, self.name, str(number))
            rows = everyone.take(np.append(np.arange(before), before + others))
            labels, channel = rows.released, self.knowledge.channel
            model = fit_posterior(rows.features, labels, k, rng, threads, channel, like)
            posterior[asked] = model.predict(release.features.take(asked))
        return conditioned(posterior, self.knowledge.likelihood(release))


def _work(release: Release) -> int:
    return len(release) * max(release.features.width, 1) * len(release.classes)
