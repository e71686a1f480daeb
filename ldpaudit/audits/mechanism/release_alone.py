"""The bound of ε from the release alone, for any choice of feature columns."""

from typing import Any, Final

import numpy as np

from ldpaudit.audits.assumptions.rows import counted_rows
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.release_only import (
    ReleaseOnlyEvidence,
    release_only_evidence,
)
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray

_MOST_POINTS: Final = 400_000


def evidence_of(context: AuditContext, features: FeatureTable) -> ReleaseOnlyEvidence | str:
    """Return the evidence of the release alone by some features, or why there is none.

    Groups come from balls around random rows; without true labels, where this is the only bound,
    also from a model of the released label.
    """
    if features is context.release.features:
        return context.once("epsilon.every column", lambda: _evidence_of(context, features))
    return _evidence_of(context, features)


def _evidence_of(context: AuditContext, features: FeatureTable) -> ReleaseOnlyEvidence | str:
    if features.is_constant():
        return "no features distinguish the rows"
    try:
        return _test_groups(context, features)
    except (InputError, InsufficientDataError) as error:
        return str(error).rstrip(".")


def _test_groups(context: AuditContext, features: FeatureTable) -> ReleaseOnlyEvidence:
    release, rng = context.release, context.rng("epsilon", "outsider")
    context.progress.step("bounding ε from the release alone")
    scores = None if release.truth is not None else _scores(context, features)
    counted = counted_rows(context)
    rows = np.arange(len(release)) if counted is None else counted
    points, chosen = _points(context, features, rows, rng)
    return release_only_evidence(
        points,
        release.released[rows],
        len(release.outputs),
        context.halves()[rows],
        rng=rng,
        point_rows=chosen,
        scores=None if scores is None else scores[rows],
        ordered=release.numeric is not None,
        threads=context.plan.threads,
    )


def _points(
    context: AuditContext, features: FeatureTable, rows: IndexArray, rng: np.random.Generator
) -> tuple[Float32Array, IndexArray]:
    metric: Any = fit_metric(features, "raw" if context.plan.metric == "raw" else "l2", rng=rng)
    n = len(rows)
    chosen = np.arange(n) if n <= _MOST_POINTS else np.sort(rng.permutation(n)[:_MOST_POINTS])
    used = rows[chosen]
    every = len(used) == len(features)
    return metric.transform(features if every else features.take(used)), chosen


def _scores(context: AuditContext, features: FeatureTable) -> FloatArray:
    """Return P(output | x) of each row from the other half's model, float64 (n, m)."""
    release = context.release
    if features is release.features:
        return cross_fitted_posterior(context, "released")
    scores = np.empty((len(release), len(release.outputs)))
    for half in (0, 1):
        rows, others = context.half(half), context.half(1 - half)
        rng = context.rng("models", "released", str(half))
        codes, threads = release.released[rows], context.plan.threads
        model = fit_posterior(features.take(rows), codes, scores.shape[1], rng, threads)
        scores[others] = model.predict(features.take(others))
    return scores
