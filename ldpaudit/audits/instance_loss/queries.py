"""The neighbourhoods of the instance-loss audit: who is asked, and whose labels are counted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.audits.instance_loss.labels import LossLabels
from ldpaudit.audits.instance_loss.scores import scored_rows, scores
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import Target
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.neighbors.counts import (
    SECONDS_PER_PAIR,
    count_labels,
    default_neighbors,
    neighbor_search,
)
from ldpaudit.estimators.neighbors.metric import LEARNED_DESCRIPTION, fit_metric, score_space
from ldpaudit.randomness import integer_seed
from ldpaudit.release import Float32Array, IntArray
from ldpaudit.running.memory import allowance, shown

Rows = npt.NDArray[np.int64]

MIN_ROWS = 100
"""With fewer rows neither half is of any use."""
QUERIES: Final = 20_000
"""Rows that ask by default: chance moves a share of them by .35 percentage points (one sd)."""
MOST_INDEXED: Final = 2_500_000
"""Of a larger half so many rows, drawn at random, are the index …"""
MOST_CELLS: Final = 1 << 26
"""… or fewer, where rows times coordinates are more."""
_PLACED_AT_ONCE: Final = 262_144
_MOST_HOURS: Final = 1.0
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


def neighborhoods(context: AuditContext, labels: LossLabels) -> Neighborhoods:
    """Count labels around randomly chosen queries, index rows and queries being disjoint.

    Index rows are one half, queries are from the other; with the learned metric both are parts of
    one half and the metric comes from the other. Raise InsufficientDataError with fewer than 100
    rows.
    """
    if len(context.release) < MIN_ROWS:
        raise InsufficientDataError(f"The privacy loss needs at least {MIN_ROWS} rows.")
    index, asking = _split(context)
    queries = _sample(context, asking)
    del asking  # Half of a large table's row numbers.
    placed = _placed(context, labels)
    if placed is None:
        return _without_features(labels, index, queries)
    points, words = placed
    width = points(queries[:1]).shape[1]
    if context.plan.exact:
        _check_exact(context, len(queries), len(index), width)
    else:
        most = min(MOST_INDEXED, MOST_CELLS // width)
        index = context.sample(index, most, "instance-loss", "index")
    k = min(context.plan.neighbors or default_neighbors(len(index), width), len(index))
    context.progress.step("counting the labels of nearest neighbours")
    search = neighbor_search(
        points(index),
        labels.counted[index],
        k,
        labels.n_counted,
        len(queries),
        seed=integer_seed(context.rng("instance-loss", "search")),
        exact=context.plan.exact,
    )
    counts = np.empty((len(queries), labels.n_counted), dtype=np.int32)
    for start in range(0, len(queries), _PLACED_AT_ONCE):
        part = slice(start, start + _PLACED_AT_ONCE)
        at_queries = points(queries[part])
        counts[part] = count_labels(search, at_queries, context.tasks, context.progress)
    totals = counts.sum(axis=1, dtype=np.int32)
    method = f"{words}; {search.method}"
    return Neighborhoods(queries, counts, totals, len(index), k, method, True)


def _check_exact(context: AuditContext, queries: int, rows: int, width: int) -> None:
    """Refuse to compare every query with every row where that takes hours, or the memory."""
    hours = queries * rows * SECONDS_PER_PAIR / context.tasks.workers / 3600
    size = rows * (12 * width + 200)
    if hours > _MOST_HOURS or size > allowance(context.plan.memory):
        raise InputError(
            f"--exact would compare {queries:,} rows with {rows:,} others each: about {hours:,.1f} "
            f"h, and {shown(size)} of memory. Ask fewer rows (--queries), allow more memory "
            "(--memory), or leave --exact out."
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


def _sample(context: AuditContext, rows: Rows) -> Rows:
    """Return the rows that ask."""
    wanted = QUERIES if context.plan.queries is None else context.plan.queries
    if wanted == "all":
        return rows
    if wanted < 1:
        raise InputError(f"The number of queries must be at least 1. Got {wanted} instead.")
    return context.sample(rows, wanted, "instance-loss", "queries")


def _placed(
    context: AuditContext, labels: LossLabels
) -> tuple[Callable[[Rows], Float32Array], str] | None:
    """Return what places rows in the metric, and the metric in words; None without features."""
    if not has_features(context):
        return None
    name = context.plan.metric
    if name == "learned":
        target: Target = "released" if labels.truth is None else "truth"
        return lambda rows: score_space(scores(context, target, rows)), LEARNED_DESCRIPTION
    features = context.release.features
    try:
        metric = fit_metric(features, name, rng=context.rng("instance-loss", "metric"))
    except InputError:
        return None
    return lambda rows: metric.transform(features, rows), metric.description


def _without_features(labels: LossLabels, index: Rows, queries: Rows) -> Neighborhoods:
    counts = np.bincount(labels.counted[index], minlength=labels.n_counted).astype(np.int32)
    shared = np.broadcast_to(counts, (len(queries), len(counts)))
    totals = np.full(len(queries), len(index), dtype=np.int32)
    return Neighborhoods(queries, shared, totals, len(index), len(index), NO_FEATURES, False)
