"""The neighbourhoods of the instance-loss audit: who is asked, and whose labels are counted."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpaudit.audits.instance_loss.labels import LossLabels
from ldpaudit.audits.instance_loss.pilot import PILOT, enough, most_queries
from ldpaudit.audits.instance_loss.scores import scored_rows, scores
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import Target
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.loss.exceedance import ErrorBudget
from ldpaudit.estimators.neighbors.counts import NeighborCounter
from ldpaudit.estimators.neighbors.means import Means
from ldpaudit.estimators.neighbors.metric import LEARNED_DESCRIPTION, fit_metric, score_space
from ldpaudit.estimators.neighbors.sizes import default_neighbors
from ldpaudit.randomness import integer_seed
from ldpaudit.release import Float32Array, IntArray

Rows = npt.NDArray[np.int64]

MIN_ROWS = 100
"""With fewer rows neither half is of any use."""
NO_FEATURES = "no features: every person has the same neighbours"


@dataclass(frozen=True)
class Neighborhoods:
    """Label counts around each query.

    Attributes
    ----------
    queries : int64 array of shape (q,)
        Rows that ask.
    counts : int32 array of shape (q, K)
    totals : int32 array of shape (q,)
    index_rows : int
        How many rows could be neighbours.
    k : int
        The wanted neighbourhood size.
    method : str
        The search and the metric, in words.
    features : bool
        Whether any feature tells rows apart.
    """

    queries: Rows
    counts: IntArray
    totals: IntArray
    index_rows: int
    k: int
    method: str
    features: bool


def neighborhoods(context: AuditContext, labels: LossLabels, budget: ErrorBudget) -> Neighborhoods:
    """Count labels around randomly chosen queries, index rows and queries being disjoint.

    Index rows are one half, queries are from the other; with the learned metric both are parts of
    one half and the metric comes from the other. How many are enough is decided on a pilot, whose
    rows are not among them (:mod:`ldpaudit.audits.instance_loss.pilot`). Raise
    InsufficientDataError with fewer than 100 rows.
    """
    if len(context.release) < MIN_ROWS:
        raise InsufficientDataError(f"The privacy loss needs at least {MIN_ROWS} rows.")
    index, asking = _split(context)
    queries, first = _sample(context, asking, budget)
    del asking  # Half of a large table's row numbers.
    prepared = _prepared(context, labels, index, queries)
    if prepared is None:
        return _without_features(labels, index, queries[first:])
    counter, k, words = prepared
    last = len(queries)
    if first:
        last = min(last, first + enough(labels, counter.count(slice(0, first)), budget))
    found = counter.count(slice(first, last))
    method = f"{words}; {found.method}"
    return Neighborhoods(
        queries[first:last], found.counts, found.totals, len(index), k, method, True
    )


def _prepared(
    context: AuditContext, labels: LossLabels, index: Rows, queries: Rows
) -> tuple[NeighborCounter, int, str] | None:
    """Return a search, k, and the metric in words; None without features."""
    points = _points(context, labels, index, queries)
    if points is None:
        return None
    at_index, at_queries, words = points
    k = context.plan.neighbors or default_neighbors(len(index), at_index.shape[1])
    k = min(k, len(index))
    context.progress.step("counting the labels of nearest neighbours")
    counter = NeighborCounter(
        at_index,
        labels.counted[index],
        at_queries,
        k,
        labels.n_counted,
        seed=integer_seed(context.rng("instance-loss", "search")),
        means=_means(context),
    )
    return counter, k, words


def _means(context: AuditContext) -> Means:
    plan = context.plan
    return Means(
        plan.threads,
        context.tasks,
        context.scratch,
        plan.memory,
        plan.device,
        plan.exact,
        progress=context.progress,
        finished=context.finished,
        key=f"instance-loss/{plan.metric}",
    )


def _split(context: AuditContext) -> tuple[Rows, Rows]:
    if context.plan.metric != "learned" or not has_features(context):
        return context.half(1), context.half(0)
    rows = context.rng("instance-loss", "learned").permutation(scored_rows(context))
    return np.sort(rows[: len(rows) // 2]), np.sort(rows[len(rows) // 2 :])


def has_features(context: AuditContext) -> bool:
    """Return whether any feature column tells two rows apart."""
    features = context.release.features
    return context.once("features.useful", lambda: not features.is_constant())


def _sample(context: AuditContext, rows: Rows, budget: ErrorBudget) -> tuple[Rows, int]:
    """Return the rows that may ask, and how many of them, the first ones, are a pilot."""
    wanted = context.plan.queries
    if wanted is None:
        most = most_queries(budget.count)
        if PILOT + most < len(rows):
            rng = context.rng("instance-loss", "queries")
            return rng.choice(rows, size=PILOT + most, replace=False), PILOT
        wanted = most
    if wanted == "all" or wanted >= len(rows):
        return rows, 0
    if wanted < 1:
        raise InputError(f"The number of queries must be at least 1. Got {wanted} instead.")
    return context.sample(rows, wanted, "instance-loss", "queries"), 0


def _points(
    context: AuditContext, labels: LossLabels, index: Rows, queries: Rows
) -> tuple[Float32Array, Float32Array, str] | None:
    """Return where index rows and queries lie, and in which metric; None without features."""
    if not has_features(context):
        return None
    name = context.plan.metric
    if name == "learned":
        target: Target = "released" if labels.truth is None else "truth"
        at_index, at_queries = (score_space(scores(context, target, at)) for at in (index, queries))
        return at_index, at_queries, LEARNED_DESCRIPTION
    features = context.release.features
    try:
        metric = fit_metric(features, name, rng=context.rng("instance-loss", "metric"))
    except InputError:
        return None
    array = _means(context).array
    at_index, at_queries = (metric.transform(features, at, array) for at in (index, queries))
    return at_index, at_queries, metric.description


def _without_features(labels: LossLabels, index: Rows, queries: Rows) -> Neighborhoods:
    counts = np.bincount(labels.counted[index], minlength=labels.n_counted).astype(np.int32)
    shared = np.broadcast_to(counts, (len(queries), len(counts)))
    totals = np.full(len(queries), len(index), dtype=np.int32)
    return Neighborhoods(queries, shared, totals, len(index), len(index), NO_FEATURES, False)
