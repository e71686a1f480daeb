"""The attack that asks a person's nearest neighbours."""

import math
from typing import Self

import numpy as np

from ldpaudit.attacks.feature_cells import shrunk_cell_posteriors
from ldpaudit.attacks.interface import Knowledge, Need, condition_on_released
from ldpaudit.attacks.label_counts import clean_prior
from ldpaudit.estimators.metric import ColumnMetric, fit_metric
from ldpaudit.estimators.neighbors import count_labels
from ldpaudit.randomness import integer_seed
from ldpaudit.release import Float32Array, FloatArray, IntArray, Release

_PRIOR_ROWS = 2.0
_FEWEST = 15
_MOST_INDEXED = 200_000


class NeighborsAttack:
    """P(y | x) from the released labels of the nearest rows, corrected for the channel.

    The neighbours' counts are deconvolved by maximum likelihood and combined with the person's own
    released label by Bayes' rule. Without a declared channel the released labels are taken at
    their word, and the person's own is not used.
    """

    name = "knn"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})
    uses_release = True
    most_rows = 10_000

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.metric: ColumnMetric | None = None
        self.points: Float32Array | None = None
        self.released: IntArray | None = None
        self.prior: FloatArray | None = None
        self.seed = 0

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Keep the rows as an index; of more than 200,000 a random sample."""
        if len(release) > _MOST_INDEXED:
            kept = np.sort(rng.choice(len(release), size=_MOST_INDEXED, replace=False))
            release = release.take(kept)
        self.metric = fit_metric(release.features, rng=rng)
        self.points = self.metric.transform(release.features)
        self.released = release.released
        self.prior = clean_prior(release.released, self.knowledge.transition(release))
        self.seed = integer_seed(rng)
        return self

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | neighbours, ỹ), float64 of shape (n, k)."""
        assert self.metric is not None
        assert self.points is not None
        assert self.released is not None
        assert self.prior is not None
        transition = self.knowledge.transition(release)
        found = count_labels(
            self.points,
            self.released,
            self.metric.transform(release.features),
            neighbors_for(len(self.points), transition),
            transition.shape[1],
            threads=self.knowledge.threads,
            seed=self.seed,
        )
        base = np.tile(self.prior, (len(release), 1))
        counts = found.counts.astype(np.float64)
        posterior = shrunk_cell_posteriors(counts, transition, base, _PRIOR_ROWS)
        if self.knowledge.channel is None:
            return posterior
        return condition_on_released(posterior, transition, release)


def neighbors_for(n: int, transition: FloatArray) -> int:
    """Return how many neighbours vote among n rows: √n/2, more where the channel hides more.

    The contrast of a channel is its second singular value, 1 − λ for randomized response.
    """
    contrast = float(np.linalg.svd(transition, compute_uv=False)[1])
    wanted = 0.5 * math.sqrt(n) / max(contrast, 0.1)
    return int(min(max(wanted, _FEWEST), max(n // 4, 1)))
