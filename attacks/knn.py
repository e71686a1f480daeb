"""The attack that asks a person's nearest neighbours."""

import math
from dataclasses import dataclass

import numpy as np

from ldpaudit.attacks.costs import Parts, Size
from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.cells import shrunk_cell_posteriors
from ldpaudit.attacks.models.counts import clean_prior
from ldpaudit.estimators.neighbors.counts import count_labels, neighbor_search
from ldpaudit.estimators.neighbors.metric import ColumnMetric, fit_metric
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IntArray, Release
from ldpaudit.tasks import Threads

_PRIOR_ROWS = 2.0
_FEWEST = 15
_MOST_INDEXED = 200_000
_MOST_ASKED = 10_000


class NeighborsAttack(ModelAttack):
    """P(y | x) from the released labels of the nearest rows, corrected for the channel.

    The neighbours' counts are deconvolved by maximum likelihood and combined with the person's own
    released label by Bayes' rule. Without a declared channel the released labels are taken as
    true, and the person's own is not used.
    """

    name = "knn"
    title = "Nearest neighbours"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})
    uses_own_label = True
    most_rows = _MOST_ASKED

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Index the rows; of more than 200,000 a random sample."""
        if len(release) > _MOST_INDEXED:
            sample = rng.choice(len(release), size=_MOST_INDEXED, replace=False)
            release = release.take(np.sort(sample))
        metric = fit_metric(release.features, rng=rng)
        transition = self.knowledge.transition(release)
        return NeighborModel(
            metric,
            metric.transform(release.features),
            release.released,
            transition,
            clean_prior(release.released, transition),
            self.knowledge.threads,
            integer_seed(rng),
        )

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        pairs = min(size.rows, _MOST_INDEXED) * min(size.rows, _MOST_ASKED)
        return {"knn": 1.0 + pairs * (size.width + 10) * 7e-11}


@dataclass(frozen=True)
class NeighborModel:
    """Indexed rows with released labels; :meth:`predict` asks the nearest ones."""

    metric: ColumnMetric
    points: Float32Array
    released: IntArray
    transition: FloatArray
    prior: FloatArray
    threads: int
    seed: int

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | neighbours), float64 of shape (n, k)."""
        search = neighbor_search(
            self.points,
            self.released,
            neighbors_for(len(self.points), self.transition),
            self.transition.shape[1],
            len(features),
            seed=self.seed,
        )
        counts = count_labels(search, self.metric.transform(features), Threads(self.threads))
        base = np.tile(self.prior, (len(features), 1))
        return shrunk_cell_posteriors(counts.astype(np.float64), self.transition, base, _PRIOR_ROWS)


def neighbors_for(n: int, transition: FloatArray) -> int:
    """Return how many neighbours vote among n rows: √n/2, more where the channel hides more.

    The contrast of a channel is its second singular value, 1 − λ for randomized response.
    """
    contrast = float(np.linalg.svd(transition, compute_uv=False)[1])
    wanted = 0.5 * math.sqrt(n) / max(contrast, 0.1)
    return int(min(max(wanted, _FEWEST), max(n // 4, 1)))
