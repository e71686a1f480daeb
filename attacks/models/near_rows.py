"""The labels of the nearest rows as a part of a posterior model: near-duplicates and households."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpaudit.attacks.interface import Model
from ldpaudit.attacks.models.blend import blend_weights, blended, part_logs
from ldpaudit.attacks.models.cells import shrunk_cell_posteriors
from ldpaudit.attacks.models.parts import Labelled
from ldpaudit.estimators.neighbors.metric import ColumnMetric, fit_metric
from ldpaudit.learners.corrections import forward_loss, forward_losses
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

SIZES = (1, 3, 7, 15, 30, 60, 120, 240)
"""Sizes of neighbourhoods that are tried."""
_PULL = 1.0
_MOST_INDEXED = 60_000
_FEWEST = 100
_PROBED = 1_000
_CHEAP_PAIRS = 2e7
"""Up to so many pairs of rows the part is kept without asking whether it is worth its time."""
_WORTH = 0.02
_TREE_COLUMNS = 5
"""Up to so many columns a tree finds near rows faster than comparing all pairs."""
_SURE = 2.0
"""So many standard errors a part must gain where rows are many: it is the dearest of all."""


@dataclass(frozen=True)
class NeighborPart:
    """The labels of the ``size`` nearest rows, corrected for the channel.

    Attributes
    ----------
    metric : ColumnMetric
    index : fitted sklearn.neighbors.NearestNeighbors
    table : Labelled
        The rows that it was fitted on.
    size : int
    """

    metric: ColumnMetric
    index: Any
    table: Labelled
    size: int

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | nearest rows), float64 of shape (n, k), every entry above 0."""
        points = self.metric.transform(features)
        counts = near_counts(self.index, self.table.codes, points, (self.size,), self.outputs)
        return self.posterior(counts[0])

    def posterior(self, counts: FloatArray) -> FloatArray:
        """Return P(y | counts of labels), float64 of shape (n, k)."""
        base = np.tile(self.table.prior, (len(counts), 1))
        shrunk = shrunk_cell_posteriors(counts, self.table.transition, base, _PULL)
        return np.maximum(shrunk, 1e-6)

    @property
    def outputs(self) -> int:
        """The number of labels m that rows may carry."""
        return int(self.table.transition.shape[1])

    def refitted(self, table: Labelled) -> "NeighborPart":
        """Return the part on other rows."""
        index = nearest(self.metric.transform(table.features))
        return replace(self, index=index, table=_bare(table))


def nearest(points: Float32Array) -> Any:
    """Return an index of rows by distance."""
    from sklearn.neighbors import NearestNeighbors

    few = points.shape[1] <= _TREE_COLUMNS
    return NearestNeighbors(n_jobs=1, algorithm="kd_tree" if few else "brute").fit(points)


def near_counts(
    index: Any,
    codes: IntArray,
    points: Float32Array | None,
    sizes: tuple[int, ...],
    outputs: int,
) -> list[FloatArray]:
    """Return the labels of the nearest rows, for each size counts of shape (n, outputs).

    ``points`` None asks for the indexed rows themselves, none of which is its own neighbour.
    """
    most = min(max(sizes), index.n_samples_fit_ - (points is None))
    found = index.kneighbors(points, n_neighbors=most, return_distance=False)
    return counts_by_size(codes[found], sizes, outputs)


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


def fit_neighbors(
    table: Labelled,
    training: IndexArray,
    validation: IndexArray,
    parts: tuple[Model, ...],
    rng: np.random.Generator,
) -> NeighborPart | None:
    """Return the nearest rows among the training rows; the size is chosen on validation rows.

    None with more than 60,000 rows, and where rows are many and the nearest ones improve the blend
    of the other parts by less than 2 % of its loss, or by less than two standard errors.
    """
    if len(training) > _MOST_INDEXED or len(training) < _FEWEST:
        return None
    asked = validation
    if len(asked) > _PROBED:
        asked = np.sort(rng.choice(asked, size=_PROBED, replace=False))
    rows = table.take(training)
    metric = fit_metric(rows.features, rng=rng)
    index = nearest(metric.transform(rows.features))
    part = NeighborPart(metric, index, _bare(rows), SIZES[0])
    points = metric.transform(table.features.take(asked))
    counts = near_counts(index, rows.codes, points, SIZES, part.outputs)
    likelihood = table.likelihood(asked)
    posteriors = [part.posterior(count) for count in counts]
    losses = [forward_loss(posterior, likelihood) for posterior in posteriors]
    best = int(np.argmin(losses))
    if len(training) ** 2 > _CHEAP_PAIRS and not _is_worth(
        table, parts, asked, posteriors[best], likelihood
    ):
        return None
    return replace(part, size=SIZES[best])


def _is_worth(
    table: Labelled,
    parts: tuple[Model, ...],
    asked: IndexArray,
    posterior: FloatArray,
    likelihood: FloatArray,
) -> bool:
    logs = part_logs(table.prior, parts, table.features.take(asked))
    more = np.concatenate([logs, np.log(posterior)[None]])
    without, beside = (
        forward_losses(blended(blend_weights(each, likelihood), each), likelihood)
        for each in (logs, more)
    )
    gain = without - beside
    error = float(gain.std()) / np.sqrt(len(gain))
    wanted = _WORTH * table.contrast**2 * float(without.mean())
    return bool(gain.mean() > max(wanted, _SURE * error))


def _bare(table: Labelled) -> Labelled:
    """Return the table without its features, which are in the index."""
    none = table.features.take(np.empty(0, dtype=np.int64))
    return replace(table, features=none)
