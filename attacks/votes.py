"""The attacks that let other rows vote: near rows, and neighbours in the file."""

# Members of a household, repeated measurements of a person, or rows sorted by something that goes
# with the label have labels alike. Each of their released labels is noisy; together they reveal
# more.

import math
from typing import Final, Self

import numpy as np
from threadpoolctl import threadpool_limits

from ldpaudit.attacks.interface import Model, Need, OneFunction
from ldpaudit.attacks.model_attack import BayesAttack, ModelAttack
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.estimators.neighbors import count_labels, neighbor_search
from ldpaudit.models.corrections import conditioned, forward_losses
from ldpaudit.models.counts import Frequencies, clean_prior, shrunk_cell_posteriors
from ldpaudit.models.label_model import blend_weights, blended
from ldpaudit.randomness import child_generator, integer_seed
from ldpaudit.release import (
    FeatureTable,
    Float32Array,
    FloatArray,
    IndexArray,
    IntArray,
    Release,
)
from ldpaudit.work.tasks import Threads

# Neighbourhoods that vote: beyond 60 rows they are what the model of the features knows.
SIZES: Final = (1, 3, 7, 15, 30, 60)
_MOST_INDEXED: Final = 60_000
_MOST_ASKED: Final = 5_000
_KNN_INDEXED: Final = 30_000
_FEWEST: Final = 15
_KNN_PULL: Final = 2.0
# Up to so many columns a tree finds near rows faster than comparing all pairs, and from so many on
# faiss compares them twice as fast as scikit-learn.
_TREE_COLUMNS: Final = 5
_FAISS_COLUMNS: Final = 16
_PULL: Final = 1.0
_LEAST: Final = 1e-6
_MOST_ORDERED: Final = 25_000
# Rows on either side that vote.
_REACHES: Final = (1, 3, 8, 20, 50)
# Of more rows, a random sample says what the votes are worth; where nothing, none is asked.
_WEIGHED: Final = 5_000


class NeighborsAttack(ModelAttack):
    """P(y | x) from the released labels of the nearest rows, corrected for the channel."""

    # The neighbours' counts are deconvolved by maximum likelihood and combined with the person's
    # own released label by Bayes' rule. Without a declared channel the released labels are taken as
    # true, and the person's own is not used.

    name = "knn"
    title = "Nearest neighbours"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})
    uses_own_label = True
    most_rows = _MOST_ASKED

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        if len(release) > _KNN_INDEXED:
            sample = rng.choice(len(release), size=_KNN_INDEXED, replace=False)
            release = release.take(np.sort(sample))
        metric, seed = fit_metric(release.features, rng=rng), integer_seed(rng)
        points, transition = metric.transform(release.features), self.knowledge.transition(release)
        size, outputs = neighbors_for(len(points), transition), transition.shape[1]
        prior, threads = clean_prior(release.released, transition), Threads(self.knowledge.threads)

        def predict(features: FeatureTable) -> FloatArray:
            search = neighbor_search(
                points, release.released, size, outputs, len(features), seed=seed
            )
            counts = count_labels(search, metric.transform(features), threads)
            base = np.tile(prior, (len(features), 1))
            return shrunk_cell_posteriors(counts.astype(np.float64), transition, base, _KNN_PULL)

        return OneFunction(predict)


def neighbors_for(n: int, transition: FloatArray) -> int:
    """Return how many neighbours vote among n rows: √n/2, more where the channel hides more."""
    # The contrast of a channel is its second singular value, 1 − λ for randomized response.
    contrast = float(np.linalg.svd(transition, compute_uv=False)[1])
    wanted = 0.5 * math.sqrt(n) / max(contrast, 0.1)
    return int(min(max(wanted, _FEWEST), max(n // 4, 1)))


def counts_by_size(labels: IntArray, sizes: tuple[int, ...], outputs: int) -> list[FloatArray]:
    """Return how often each label occurs among the first labels of each row.

    ``labels`` has shape (n, most), nearest first; a label of −1 counts for nothing.
    """
    counts, tables, done = np.zeros((len(labels), outputs)), [], 0
    first = outputs * np.arange(len(labels))[:, None]
    for size in sizes:
        more = labels[:, done:size]
        seen = (first + more)[more >= 0]
        counts = counts + np.bincount(seen, minlength=counts.size).reshape(counts.shape)
        done = min(size, labels.shape[1])
        tables.append(counts)
    return tables


class VotesAttack(BayesAttack):
    """``bayes`` together with votes of other rows' released labels, own labels apart."""

    # Votes of several sizes are corrected for the channel and blended with the model of the
    # features; the weights are those that explain the released labels best. A row's own label
    # enters through the channel alone.

    learns_from_asked = True
    seen: Release | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        self.seen = release
        return super().fit(release, rng)

    def posterior(self, release: Release) -> FloatArray:
        assert self.model is not None
        assert self.seen is not None
        seen, transition = self.seen, self.knowledge.transition(release)
        prior = clean_prior(np.append(seen.released, release.released), transition)
        posterior = self.model.predict(release.features)
        likelihood, n = self.knowledge.likelihood(release), len(release)

        def logs_of(rows: IndexArray) -> FloatArray:
            """Return log-probabilities of class frequencies, model and votes, (2 + sizes, r, k)."""
            counts = self.votes(seen, release, rows)
            voted = [voted_posterior(count, transition, prior) for count in counts]
            parts = [np.broadcast_to(prior, (len(rows), len(prior))), posterior[rows], *voted]
            return np.log(np.maximum(np.stack(parts), _LEAST))

        rng = child_generator(self.knowledge.seed, self.name)
        rows = np.sort(rng.permutation(n)[:_WEIGHED]) if n > _WEIGHED else np.arange(n)
        logs = logs_of(rows)
        weights = blend_weights(logs, likelihood[rows])
        if n > _WEIGHED:
            # Where votes explain released labels no better than the model alone, by one standard
            # error, asking more rows only costs time.
            gain = forward_losses(np.exp(logs[1]), likelihood[rows])
            gain -= forward_losses(blended(weights, logs), likelihood[rows])
            if gain.mean() <= gain.std() / np.sqrt(len(gain)):
                return conditioned(posterior, likelihood)
            logs = logs_of(np.arange(n))
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
        everyone = seen.followed_by(asked)
        n, first = len(everyone), len(seen)
        rng = np.random.default_rng(self.knowledge.seed)
        spared = max(_MOST_INDEXED - len(asked), 0)
        others = np.sort(rng.permutation(first)[:spared]) if n > _MOST_INDEXED else np.arange(first)
        indexed = np.append(others, np.arange(first, n))
        features = everyone.features.take(indexed)
        points = fit_metric(features, rng=rng).transform(features)
        found = _nearest(points, len(others) + rows)
        return counts_by_size(everyone.released[indexed][found], SIZES, len(everyone.outputs))


class RowOrderAttack(VotesAttack):
    """Votes of the rows before and after in the file."""

    name = "row-order"
    title = "Votes of neighbouring rows in the file (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "order"})
    most_rows = _MOST_ORDERED

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        if release.features.is_constant():
            transition = self.knowledge.transition(release)
            return Frequencies(clean_prior(release.released, transition))
        return super().learn(release, rng)

    def votes(self, seen: Release, asked: Release, rows: IndexArray) -> list[FloatArray]:
        assert seen.places is not None
        assert asked.places is not None
        labels, ranks = self.knowledge.in_order, asked.places
        if labels is None:
            places = np.append(seen.places, asked.places)
            labels = np.append(seen.released, asked.released)[np.argsort(places)]
            ranks = np.searchsorted(np.sort(places), asked.places)
        own, reaches = ranks[rows], np.arange(1, _REACHES[-1] + 1)
        # −1 beyond either end; nearest rows first, one before and one after at a time.
        edge = np.full(_REACHES[-1], -1, dtype=labels.dtype)
        padded = np.concatenate([edge, labels, edge])
        around = np.stack([own[:, None] - reaches, own[:, None] + reaches], axis=2)
        found = padded[around.reshape(len(own), -1) + _REACHES[-1]]
        sizes = tuple(2 * reach for reach in _REACHES)
        return counts_by_size(found, sizes, len(asked.outputs))


def voted_posterior(counts: FloatArray, transition: FloatArray, prior: FloatArray) -> FloatArray:
    """Return P(y | votes), float64 of shape (n, k): counts (n, m) drawn towards the prior."""
    distinct, place = np.unique(counts, axis=0, return_inverse=True)
    base = np.tile(prior, (len(distinct), 1))
    return shrunk_cell_posteriors(distinct, transition, base, _PULL)[place.ravel()]


def _nearest(points: Float32Array, own: IndexArray) -> IndexArray:
    """Return the rows nearest to some rows but themselves, which need not be found first."""
    most, width = min(max(SIZES) + 1, len(points)), points.shape[1]
    if width < _FAISS_COLUMNS:
        from sklearn.neighbors import NearestNeighbors

        way = "kd_tree" if width <= _TREE_COLUMNS else "brute"
        index = NearestNeighbors(n_jobs=1, algorithm=way).fit(points)
        found = index.kneighbors(points[own], n_neighbors=most, return_distance=False)
    else:
        import faiss

        with threadpool_limits(limits=1):
            found = faiss.knn(points[own], points, most)[1]
    last = np.argsort(found == own[:, None], axis=1, kind="stable")
    return np.asarray(np.take_along_axis(found, last, axis=1)[:, :-1])
