"""Bayes' rule with a model of all that is released, as a real attacker has it."""

from typing import Final, Self

import numpy as np

from ldpaudit.attacks.bayes import BayesAttack
from ldpaudit.attacks.costs import Parts, Price, Size
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
"""Parts of the rows to guess, each guessed by a model of all other rows …"""
_LARGE_PARTS = 2
"""… and in large releases, where an eighth more of the rows teaches little."""
_LARGE_WORK = 0.5
_SMALL_WORK = 0.1
"""Millions of rows × columns × labels of a half, up to which a model is chosen anew for each part:
with so few, more rows change what can be learnt."""
_REFITTED: Final = Price(fixed=2.0, each=2.0, most=5.0)
_COUNTED: Final = Price(fixed=3.0, each=0.0, most=0.0)


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
    learns_as_bayes = True
    """Whether all that it does beyond ``bayes`` is to learn from more rows."""
    seen: Release | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Keep the rows, and use the model that ``bayes`` learns from them as the recipe."""
        self.seen = release
        return super().fit(release, rng)

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | what is released), float64 of shape (n, k)."""
        assert self.seen is not None
        seed = self.knowledge.seed
        before, n = len(self.seen), len(release)
        everyone = self.seen.followed_by(release)
        work = Size(before, self.seen.features.width, len(release.classes)).work
        parts = _PARTS if work <= _LARGE_WORK else _LARGE_PARTS
        part = child_generator(seed, self.name).permutation(n) % parts
        posterior = np.empty((n, len(release.classes)))
        for number in range(min(parts, n)):
            asked, others = np.flatnonzero(part == number), np.flatnonzero(part != number)
            rng = child_generator(seed, self.name, str(number))
            model = self._model(everyone.take(np.append(np.arange(before), before + others)), rng)
            posterior[asked] = model.predict(release.features.take(asked))
        return conditioned(posterior, self.knowledge.likelihood(release))

    def _model(self, release: Release, rng: np.random.Generator) -> PosteriorModel:
        channel, threads, k = self.knowledge.channel, self.knowledge.threads, len(release.classes)
        features, codes = release.features, release.released
        assert self.seen is not None
        if Size(len(self.seen), self.seen.features.width, k).work <= _SMALL_WORK:
            return fit_posterior(features, codes, k, rng, threads, channel=channel)
        assert isinstance(self.model, SharedModel)
        recipe = self.model.model
        assert isinstance(recipe, PosteriorModel)
        sampled = len(self.seen) >= MOST_ROWS
        return refit_posterior(recipe, features, codes, rng, threads, channel, sampled=sampled)

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part; of many rows only counts are fitted again."""
        price = _COUNTED if size.rows >= MOST_ROWS else _REFITTED
        return {**super().cost(size), self.name: price.seconds(size)}
