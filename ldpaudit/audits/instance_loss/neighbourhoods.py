"""The neighbourhoods of the instance-loss audit: which labels count, who is asked, who is near."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ldpaudit.arrays import code_counts
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import (
    Target,
    aligned_channel,
    cross_fitted_posterior,
    feature_dependence,
    half_model,
)
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.consistency import channel_consistency
from ldpaudit.estimators.instance_loss import SMOOTHING, PosteriorBox, smoothness_bias
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.metric import LEARNED_DESCRIPTION, fit_metric, score_space
from ldpaudit.estimators.neighbors import (
    SECONDS_PER_PAIR,
    count_labels,
    default_neighbors,
    neighbor_search,
)
from ldpaudit.randomness import integer_seed
from ldpaudit.release import Float32Array, FloatArray, IndexArray, IntArray, label_table
from ldpaudit.work.memory import allowance, shown

REFUTED = 0.001  # A declared channel is not used where the counts disagree with it at this p-value.
MIN_ROWS = 100  # With fewer rows neither half is of any use.
# Rows that ask by default: chance moves a share of them by .35 percentage points (one sd).
QUERIES: Final = 20_000
# With hundreds of labels fewer: queries times labels times outputs, and the fewest all the same.
_MOST_TERMS, _FEWEST_QUERIES = 500_000_000, 500
# Of larger halves a random sample of so many rows is scored: more would not make bounds tighter
# than a thousandth. Up to so many rows in all, every row is scored once for all audits.
_MOST_SCORED, _SHARED_UP_TO, _BLOCK = 4_000_000, 1_000_000, 250_000
# Of a larger half so many rows, drawn at random, are the index; or fewer, where rows times
# coordinates are more.
_MOST_INDEXED, MOST_CELLS, _PLACED_AT_ONCE = 2_500_000, 1 << 26, 262_144
_MOST_HOURS: Final = 1.0
_NO_FEATURES = "no features: every person has the same neighbours"


@dataclass(frozen=True)
class LossLabels:
    """Labels of all n rows of a release, k true and m released ones."""

    truth: IntArray | None
    """Int32 (n,): true labels, coded 0 … k − 1 among those that occur; None for an outsider."""
    released: IntArray
    classes: IndexArray
    """Int64 (k,): the codes of those labels in the release."""
    outputs: int
    prior: FloatArray
    prior_low: FloatArray
    prior_high: FloatArray
    """``prior``, ``prior_low`` and ``prior_high``: float64 (k,): shares of the true labels, and a
    simultaneous confidence interval for them."""
    channel: FloatArray | None
    """Float64 (k, m): P(z | y); None where the released label is known to depend on the features.
    """
    source: Literal["declared", "measured", "none"]
    """Where the channel is from."""

    @property
    def neighbour_labels(self) -> tuple[IntArray, int]:
        """Labels that are counted among neighbours, and how many: true, an outsider's released."""
        if self.truth is None:
            return self.released, self.outputs
        return self.truth, len(self.classes)

    def box(self, counts: IntArray, totals: IntArray, error: float) -> PosteriorBox:
        """Return the posteriors of true labels that counts of the counted labels imply."""
        box = PosteriorBox.from_counts(counts, totals, error)
        if self.truth is not None:
            return box
        assert self.channel is not None
        return box.through(self.channel)


def measured_channel(labels: IntArray, released: IntArray, k: int, m: int) -> FloatArray:
    """Return P(z | y) as counted, float64 of shape (k, m), every entry positive."""
    # Each label's counts are shrunk by m/2 rows towards the shares of all released labels.
    counts = label_table(labels, released, k, m)
    shares = (counts.sum(axis=0) + SMOOTHING) / (counts.sum() + SMOOTHING * m)
    rows = counts.sum(axis=1, keepdims=True)
    return np.asarray((counts + SMOOTHING * m * shares) / (rows + SMOOTHING * m))


def measured_shares(labels: IntArray, k: int) -> FloatArray:
    """Return the labels' shares, float64 of shape (k,), each with half a row added."""
    counts = np.bincount(labels, minlength=k)
    return np.asarray((counts + SMOOTHING) / (len(labels) + SMOOTHING * k))


def prior_box(released: IntArray, channel: FloatArray, error: float) -> PosteriorBox:
    """Return the shares of true labels, one row, that released labels imply through a channel."""
    counts = code_counts(released, channel.shape[1]).astype(np.int32)
    total = np.array([len(released)], dtype=np.int32)
    return PosteriorBox.from_counts(counts[None], total, error).through(channel)


def loss_labels(context: AuditContext, error: float) -> LossLabels:
    """Return the labels of a release; the shares' intervals fail with probability ``error``."""
    # The declared channel counts unless the counts refute it, else the measured one. Raise
    # InsufficientDataError if only one true label occurs.
    release, declared = context.release, aligned_channel(context)
    released, m, truth = release.released, len(release.outputs), release.truth
    if truth is None:
        assert declared is not None
        matrix = declared.matrix
        box, classes = prior_box(released, matrix, error), np.arange(len(matrix))
        low, high = np.clip(box.low[0], 1e-12, None), np.clip(box.high[0], None, 1 - 1e-12)
        implied = box.estimate[0]
        return LossLabels(None, released, classes, m, implied, low, high, matrix, "declared")
    occurs = code_counts(truth, len(release.classes)) > 0
    classes = np.flatnonzero(occurs)
    if len(classes) < 2:
        raise InsufficientDataError("The privacy loss needs at least two true labels that occur.")
    codes: IntArray = truth if occurs.all() else (np.cumsum(occurs, dtype=np.int32) - 1)[truth]
    counts, n = code_counts(codes, len(classes)), len(codes)
    tail = error / (2 * len(counts))
    low, high = clopper_pearson_lower(counts, n, tail), clopper_pearson_upper(counts, n, tail)
    shares = codes, released, classes, m, counts / n, low, high
    if feature_dependence(context) is not None:
        return LossLabels(*shares, None, "none")
    if declared is not None:
        matrix, table = declared.matrix[classes], label_table(codes, released, len(classes), m)
        if channel_consistency(table, matrix, REFUTED).p_value > REFUTED:
            return LossLabels(*shares, matrix, "declared")
    return LossLabels(*shares, measured_channel(codes, released, len(classes), m), "measured")


def scored_rows(context: AuditContext) -> IndexArray:
    """Return the rows of the first half that a model scores, in order; blind to the labels."""
    return context.sample(context.half(0), _MOST_SCORED, "instance-loss", "scored")


def scores(context: AuditContext, target: Target, rows: IndexArray) -> FloatArray:
    """Return class probabilities given the features, by the model of the second half.

    ``rows``, int64 (r,): some of :func:`scored_rows`, in order. Returns float64 (r, K).
    """
    if len(context.release) <= _SHARED_UP_TO:
        return cross_fitted_posterior(context, target)[rows]
    every = scored_rows(context)

    def score() -> FloatArray:
        model, features = half_model(context, target, 1), context.release.features
        parts = (every[start : start + _BLOCK] for start in range(0, len(every), _BLOCK))
        return np.concatenate([model.predict(features.take(part)) for part in parts])

    known = context.once(f"instance-loss.scores.{target}", score)
    return known[np.searchsorted(every, rows)]


@dataclass(frozen=True)
class Neighborhoods:
    """Label counts around each query."""

    queries: IndexArray
    """Int64 (q,): rows that ask."""
    counts: IntArray
    index_rows: int
    """How many rows could be neighbours."""
    k: int
    """The wanted neighbourhood size."""
    method: str
    """The search and the metric, in words."""
    smoothness: tuple[float, float] | None = None
    """C and β, where they are given."""

    def box(self, labels: LossLabels, error: float) -> PosteriorBox:
        """Return intervals of the posteriors, each row's wrong with probability ``error``."""
        # Of the neighbourhoods' means; with a smoothness, of each row's own.
        if self.smoothness is None or not self.features:
            return labels.box(self.counts, self.totals, error)
        bias = smoothness_bias(self.index_rows, self.k, error / 2, *self.smoothness)
        return labels.box(self.counts, self.totals, error / 2).widened(bias)

    @property
    def totals(self) -> IntArray:
        """How many labels were counted around each query, int32 (q,)."""
        return np.asarray(self.counts.sum(axis=1, dtype=np.int32))

    @property
    def features(self) -> bool:
        """Whether any feature distinguishes rows."""
        return self.method != _NO_FEATURES


def neighborhoods(context: AuditContext, labels: LossLabels) -> Neighborhoods:
    """Count labels around randomly chosen queries, index rows and queries being disjoint."""
    # Index rows are one half, queries are from the other; with the learned metric both are parts of
    # one half and the metric comes from the other. Raise InsufficientDataError with fewer than 100
    # rows.
    if len(context.release) < MIN_ROWS:
        raise InsufficientDataError(f"The privacy loss needs at least {MIN_ROWS} rows.")
    plan, (codes, kinds) = context.plan, labels.neighbour_labels
    index, queries = context.half(1), context.half(0)
    if plan.metric == "learned" and has_features(context):
        rows = context.rng("instance-loss", "learned").permutation(scored_rows(context))
        index, queries = np.sort(rows[: len(rows) // 2]), np.sort(rows[len(rows) // 2 :])
    fewer = max(_MOST_TERMS // (len(labels.classes) * labels.outputs), _FEWEST_QUERIES)
    wanted = min(QUERIES, fewer) if plan.queries is None else plan.queries
    if wanted != "all":
        if wanted < 1:
            raise InputError(f"The number of queries must be at least 1. Got {wanted} instead.")
        queries = context.sample(queries, wanted, "instance-loss", "queries")
    placed = _placed(context, labels)
    if placed is None:
        shared = np.bincount(codes[index], minlength=kinds).astype(np.int32)
        counts = np.broadcast_to(shared, (len(queries), len(shared)))
        return Neighborhoods(queries, counts, len(index), len(index), _NO_FEATURES)
    points, words = placed
    width = points(queries[:1]).shape[1]
    # A ball that some of its rows are missing from would be larger than its count says.
    exact = plan.exact or plan.smoothness is not None
    if exact:
        _check_exact(context, len(queries), len(index), width)
    else:
        most = min(_MOST_INDEXED, MOST_CELLS // width)
        index = context.sample(index, most, "instance-loss", "index")
    k = min(plan.neighbors or default_neighbors(len(index), width), len(index))
    context.progress.step("counting the labels of nearest neighbours")
    seed = integer_seed(context.rng("instance-loss", "search"))
    asked = points(index), codes[index], k, kinds, len(queries)
    search = neighbor_search(*asked, seed=seed, exact=exact)
    counts = np.empty((len(queries), kinds), dtype=np.int32)
    for start in range(0, len(queries), _PLACED_AT_ONCE):
        part = slice(start, start + _PLACED_AT_ONCE)
        at_queries = points(queries[part])
        counts[part] = count_labels(search, at_queries, context.run.tasks, context.progress)
    smooth = None if plan.smoothness is None else (plan.smoothness, plan.smoothness_power)
    return Neighborhoods(queries, counts, len(index), k, f"{words}; {search.method}", smooth)


def _check_exact(context: AuditContext, queries: int, rows: int, width: int) -> None:
    """Refuse to compare every query with every row where that takes hours, or the memory."""
    hours = queries * rows * SECONDS_PER_PAIR / context.run.tasks.workers / 3600
    size = rows * (12 * width + 200)
    if hours > _MOST_HOURS or size > allowance(context.plan.memory):
        raise InputError(
            f"--exact, or --smoothness, would compare {queries:,} rows with {rows:,} others each: "
            f"about {hours:,.1f} h, and {shown(size)} of memory. Ask fewer rows (--queries), allow "
            "more memory (--memory), or leave it out."
        )


def has_features(context: AuditContext) -> bool:
    """Return whether any feature column distinguishes two rows."""
    features = context.release.features
    return context.once("features.useful", lambda: not features.is_constant())


def _placed(
    context: AuditContext, labels: LossLabels
) -> tuple[Callable[[IndexArray], Float32Array], str] | None:
    """Return what places rows in the metric, and the metric in words; None without features."""
    name, features = context.plan.metric, context.release.features
    if not has_features(context):
        return None
    if name == "learned":
        target: Target = "released" if labels.truth is None else "truth"
        return lambda rows: score_space(scores(context, target, rows)), LEARNED_DESCRIPTION
    try:
        metric = fit_metric(features, name, rng=context.rng("instance-loss", "metric"))
    except InputError:
        return None
    return lambda rows: metric.transform(features, rows), metric.description
