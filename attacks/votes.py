"""The attacks that let other rows of the whole release vote: near rows, and neighbours in the file.

Members of a household, repeated measurements of a person, or rows sorted by something that goes
with the label have labels alike. Each of their released labels is noisy; together they tell.
"""

from typing import Any, Final, Self

import numpy as np

from ldpaudit.attacks.bayes import BayesAttack
from ldpaudit.attacks.costs import Parts, Size
from ldpaudit.attacks.interface import Model, Need, conditioned
from ldpaudit.attacks.models.blend import blend_weights, blended
from ldpaudit.attacks.models.cells import shrunk_cell_posteriors
from ldpaudit.attacks.models.counts import Frequencies, clean_prior
from ldpaudit.attacks.models.near_rows import SIZES, counts_by_size, nearest
from ldpaudit.estimators.neighbors.metric import fit_metric
from ldpaudit.release import Float32Array, FloatArray, IndexArray, Release

_MOST_INDEXED: Final = 60_000
_MOST_ASKED: Final = 5_000
_SIZES: Final = SIZES[:6]
"""Neighbourhoods of up to 60 rows: more are what the model of the features knows."""
_PAIR_SECONDS: Final = 8e-9
"""For each pair of an asked and an indexed row, in both folds."""
_PULL = 1.0
_LEAST = 1e-6
_REACHES: Final = (1, 3, 8, 20, 50)
"""Rows on either side that vote."""


class VotesAttack(BayesAttack):
    """``bayes`` together with votes of other rows' released labels, own labels apart.

    Votes of several sizes are corrected for the channel and blended with the model of the features;
    the weights are those that explain the released labels best. A row's own label enters through
    the channel alone.
    """

    learns_from_asked = True
    seen: Release | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Keep the rows, which vote, and learn the model that ``bayes`` learns."""
        self.seen = release
        return super().fit(release, rng)

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | what is released), float64 of shape (n, k)."""
        assert self.model is not None
        assert self.seen is not None
        transition = self.knowledge.transition(release)
        everyone = self.seen.followed_by(release)
        prior = clean_prior(everyone.released, transition)
        voted = [voted_posterior(c, transition, prior) for c in self.votes(everyone, release)]
        parts = [np.broadcast_to(prior, voted[0].shape), self.model.predict(release.features)]
        logs = np.log(np.maximum(np.stack([*parts, *voted]), _LEAST))
        likelihood = self.knowledge.likelihood(release)
        return conditioned(blended(blend_weights(logs, likelihood), logs), likelihood)

    def votes(self, everyone: Release, asked: Release) -> list[FloatArray]:
        """Return the labels that vote for each asked row, counts of shape (n, m) by size.

        The asked rows are the last of everyone.
        """
        raise NotImplementedError


class NearVotesAttack(VotesAttack):
    """Votes of the rows with the nearest features in the whole release."""

    name = "near-rows"
    title = "Votes of near rows (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "features"})
    most_rows = _MOST_ASKED

    def votes(self, everyone: Release, asked: Release) -> list[FloatArray]:
        """Return the labels of the nearest rows."""
        n, first = len(everyone), len(everyone) - len(asked)
        rng = np.random.default_rng(self.knowledge.seed)
        spared = max(_MOST_INDEXED - len(asked), 0)
        others = np.sort(rng.permutation(first)[:spared]) if n > _MOST_INDEXED else np.arange(first)
        rows = np.append(others, np.arange(first, n))
        features = everyone.features.take(rows)
        points = fit_metric(features, rng=rng).transform(features)
        own = np.arange(len(others), len(rows))
        found = _without_self(nearest(points), points[own], own)
        return counts_by_size(everyone.released[rows][found], _SIZES, len(everyone.outputs))

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        pairs = min(2 * size.rows, _MOST_INDEXED) * min(size.rows, _MOST_ASKED)
        return {**super().cost(size), self.name: 0.2 + _PAIR_SECONDS * pairs}


class RowOrderAttack(VotesAttack):
    """Votes of the rows before and after in the file."""

    name = "row-order"
    title = "Votes of neighbouring rows in the file (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "order"})
    most_rows = 50_000

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Return the noise-aware model, or the class frequencies where no feature varies."""
        if release.features.is_constant():
            transition = self.knowledge.transition(release)
            return Frequencies(clean_prior(release.released, transition))
        return super().learn(release, rng)

    def votes(self, everyone: Release, asked: Release) -> list[FloatArray]:
        """Return the labels of the rows around, own label left out."""
        assert self.seen is not None
        assert self.seen.places is not None
        assert asked.places is not None
        order = np.argsort(np.append(self.seen.places, asked.places))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        outputs = np.eye(len(everyone.outputs))
        before = np.zeros((len(order) + 1, len(outputs)))
        np.cumsum(outputs[everyone.released[order]], axis=0, out=before[1:])
        mine, own = rank[len(self.seen) :], outputs[asked.released]
        return [
            before[np.minimum(mine + reach + 1, len(order))]
            - before[np.maximum(mine - reach, 0)]
            - own
            for reach in _REACHES
        ]

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        return {**super().cost(size), self.name: 0.1 + 4e-6 * min(size.rows, 50_000)}


def voted_posterior(counts: FloatArray, transition: FloatArray, prior: FloatArray) -> FloatArray:
    """Return P(y | votes), float64 of shape (n, k): counts (n, m) drawn towards the prior."""
    distinct, place = np.unique(counts, axis=0, return_inverse=True)
    base = np.tile(prior, (len(distinct), 1))
    return shrunk_cell_posteriors(distinct, transition, base, _PULL)[place.ravel()]


def _without_self(index: Any, points: Float32Array, own: IndexArray) -> IndexArray:
    """Return the nearest rows of each row but itself, which need not be found first."""
    most = min(max(_SIZES) + 1, index.n_samples_fit_)
    found = index.kneighbors(points, n_neighbors=most, return_distance=False)
    last = np.argsort(found == own[:, None], axis=1, kind="stable")
    return np.asarray(np.take_along_axis(found, last, axis=1)[:, :-1])
