"""Bayes' rule with a model of all that is released: what a real attacker has."""

from typing import Self

import numpy as np

from ldpaudit.attacks.bayes import BayesAttack
from ldpaudit.attacks.costs import Parts, Size
from ldpaudit.attacks.interface import Need, SharedModel, conditioned
from ldpaudit.attacks.models.posterior import (
    MOST_ROWS,
    PosteriorModel,
    fit_posterior,
    refit_posterior,
)
from ldpaudit.randomness import child_generator
from ldpaudit.release import FloatArray, Release

_PARTS = 4
"""The rows asked about are cut into so many parts, each guessed by a model of all other rows."""
_SMALL_WORK = 0.1
"""Millions of rows × columns × labels of a half, up to which a model is chosen anew for each part:
there a few more rows change what can be learnt at all."""
_MOST_SECONDS = 40.0


class WholeReleaseAttack(BayesAttack):
    """``bayes`` learnt from every released row but those of the row's own part.

    Whoever attacks a release has all of it. The rows to guess are cut into parts, and each part's
    P(y | x) is learnt from the rows given before and from the released labels of the other parts:
    seven eighths of the release instead of a half. A row's own released label enters by the
    channel alone, for a model that had seen it would count it twice.
    """

    name = "bayes-whole-release"
    title = "Whole release, channel (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "features"})
    learns_from_asked = True
    seen: Release | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Remember the rows, and take the model that ``bayes`` learns from them as the recipe."""
        self.seen = release
        return super().fit(release, rng)

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | what is released), float64 of shape (n, k)."""
        assert self.seen is not None
        seed = self.knowledge.seed
        before, n = len(self.seen), len(release)
        everyone = self.seen.followed_by(release)
        part = child_generator(seed, self.name).permutation(n) % _PARTS
        posterior = np.empty((n, len(release.classes)))
        for own in range(min(_PARTS, n)):
            mine = np.flatnonzero(part == own)
            others = np.concatenate([np.arange(before), before + np.flatnonzero(part != own)])
            rng = child_generator(seed, self.name, str(own))
            model = self._model(everyone.take(others), rng)
            posterior[mine] = model.predict(release.features.take(mine))
        return conditioned(posterior, self.knowledge.likelihood(release))

    def _model(self, release: Release, rng: np.random.Generator) -> PosteriorModel:
        channel, threads, k = self.knowledge.channel, self.knowledge.threads, len(release.classes)
        features, codes = release.features, release.released
        assert self.seen is not None
        if _is_small(self.seen):
            return fit_posterior(features, codes, k, rng, threads, channel=channel)
        assert isinstance(self.model, SharedModel)
        recipe = self.model.model
        assert isinstance(recipe, PosteriorModel)
        sampled = len(self.seen) >= MOST_ROWS
        return refit_posterior(recipe, features, codes, rng, threads, channel, sampled=sampled)

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        if size.work <= _SMALL_WORK:
            own = 2.0 + 40.0 * size.work
        else:
            own = 1.0 + (0.0 if size.rows >= MOST_ROWS else min(3.0 * size.work, _MOST_SECONDS))
        return {**super().cost(size), self.name: own}


def _is_small(release: Release) -> bool:
    size = Size(len(release), release.features.width, len(release.classes))
    return size.work <= _SMALL_WORK
