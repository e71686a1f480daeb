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
from ldpaudit.learners.corrections import forward_losses
from ldpaudit.randomness import child_generator
from ldpaudit.release import Float32Array, FloatArray, IndexArray, IntArray, Release

_MOST_INDEXED: Final = 60_000
_MOST_ASKED: Final = 5_000
_SIZES: Final = SIZES[:6]
"""Neighbourhoods of up to 60 rows: more are what the model of the features knows."""
_PAIR_SECONDS: Final = 8e-9
"""For each pair of an asked and an indexed row, in both folds."""
_PULL = 1.0
_LEAST = 1e-6
_MOST_ORDERED: Final = 25_000
_VOTE_SECONDS: Final = 1e-5
"""For each asked row and label, in both folds."""
_REACHES: Final = (1, 3, 8, 20, 50)
"""Rows on either side that vote."""
_WEIGHED: Final = 5_000
"""Of more rows, a random sample says what the votes are worth; where nothing, none is asked."""


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
        prior = clean_prior(np.append(self.seen.released, release.released), transition)
        posterior = self.model.predict(release.features)
        likelihood = self.knowledge.likelihood(release)
        n, weights = len(release), None
        if n > _WEIGHED:
            rng = child_generator(self.knowledge.seed, self.name)
            rows = np.sort(rng.permutation(n)[:_WEIGHED])
            counts = self.votes(self.seen, release, rows)
            logs = _logs(prior, posterior[rows], counts, transition)
            weights = blend_weights(logs, likelihood[rows])
            if not _tell(weights, logs, likelihood[rows]):
                return conditioned(posterior, likelihood)
        counts = self.votes(self.seen, release, np.arange(n))
        logs = _logs(prior, posterior, counts, transition)
        weights = blend_weights(logs, likelihood) if weights is None else weights
        return conditioned(blended(weights, logs), likelihood)

    def votes(self, seen: Release, asked: Release, rows: IndexArray) -> list[FloatArray]:
        """Return the labels that vote for some of the asked rows, counts of shape (r, m) by size.

        Seen and asked rows vote.
        """
        raise NotImplementedError


class NearVotesAttack(VotesAttack):
    """Votes of the rows with the nearest features in the whole release."""

    name = "near-rows"
    title = "Votes of near rows (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "features"})
    most_rows = _MOST_ASKED

    def votes(self, seen: Release, asked: Release, rows: IndexArray) -> list[FloatArray]:
        """Return the labels of the nearest rows."""
        everyone = seen.followed_by(asked)
        n, first = len(everyone), len(seen)
        rng = np.random.default_rng(self.knowledge.seed)
        spared = max(_MOST_INDEXED - len(asked), 0)
        others = np.sort(rng.permutation(first)[:spared]) if n > _MOST_INDEXED else np.arange(first)
        indexed = np.append(others, np.arange(first, n))
        features = everyone.features.take(indexed)
        points = fit_metric(features, rng=rng).transform(features)
        own = len(others) + rows
        found = _without_self(nearest(points), points[own], own)
        return counts_by_size(everyone.released[indexed][found], _SIZES, len(everyone.outputs))

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        pairs = min(2 * size.rows, _MOST_INDEXED) * min(size.rows, _MOST_ASKED)
        return {**super().cost(size), self.name: 0.2 + _PAIR_SECONDS * pairs}


class RowOrderAttack(VotesAttack):
    """Votes of the rows before and after in the file."""

    name = "row-order"
    title = "Votes of neighbouring rows in the file (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "order"})
    most_rows = _MOST_ORDERED

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Return the noise-aware model, or the class frequencies where no feature varies."""
        if release.features.is_constant():
            transition = self.knowledge.transition(release)
            return Frequencies(clean_prior(release.released, transition))
        return super().learn(release, rng)

    def votes(self, seen: Release, asked: Release, rows: IndexArray) -> list[FloatArray]:
        """Return the labels of the rows around, own label left out."""
        assert asked.places is not None
        labels, ranks = self._in_order(seen, asked)
        own, reaches = ranks[rows], np.arange(1, _REACHES[-1] + 1)
        # −1 beyond either end; nearest rows first, one before and one after at a time.
        edge = np.full(_REACHES[-1], -1, dtype=labels.dtype)
        padded = np.concatenate([edge, labels, edge])
        around = np.stack([own[:, None] - reaches, own[:, None] + reaches], axis=2)
        found = padded[around.reshape(len(own), -1) + _REACHES[-1]]
        sizes = tuple(2 * reach for reach in _REACHES)
        return counts_by_size(found, sizes, len(asked.outputs))

    def _in_order(self, seen: Release, asked: Release) -> tuple[IntArray, IndexArray]:
        """Return released labels in the order of the file, and where among them the asked are."""
        assert seen.places is not None
        assert asked.places is not None
        if self.knowledge.in_order is not None:
            return self.knowledge.in_order, asked.places
        order = np.argsort(np.append(seen.places, asked.places))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return np.append(seen.released, asked.released)[order], ranks[len(seen) :]

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        votes = min(size.rows, _MOST_ORDERED) * size.classes
        return {**super().cost(size), self.name: 0.2 + _VOTE_SECONDS * votes}


def _logs(
    prior: FloatArray, posterior: FloatArray, counts: list[FloatArray], transition: FloatArray
) -> FloatArray:
    """Return log-probabilities of class frequencies, model and votes, (2 + sizes, n, k)."""
    voted = [voted_posterior(count, transition, prior) for count in counts]
    parts = [np.broadcast_to(prior, posterior.shape), posterior, *voted]
    return np.log(np.maximum(np.stack(parts), _LEAST))


def _tell(weights: FloatArray, logs: FloatArray, likelihood: FloatArray) -> bool:
    """Return whether votes explain released labels better than the model does alone.

    By one standard error: where they do not, asking more rows only costs time.
    """
    without = forward_losses(np.exp(logs[1]), likelihood)
    gain = without - forward_losses(blended(weights, logs), likelihood)
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))


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
