"""What the release alone says of ε, by some of its columns."""

from typing import Any, Final

import numpy as np

from ldpaudit.audits.assumptions.rows import counted_rows
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.release_only import (
    ReleaseOnlyEvidence,
    SplitRows,
    release_only_evidence,
)
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.release import FeatureTable, FloatArray

_MOST_POINTS: Final = 400_000


def evidence_of(context: AuditContext, features: FeatureTable) -> ReleaseOnlyEvidence | str:
    """Return the evidence of the release alone by some features, or why there is none."""
    # Groups come from balls around random rows; without true labels, where this is the only bound,
    # also from a model of the released label.

    def build() -> ReleaseOnlyEvidence | str:
        if features.is_constant():
            return "no features distinguish the rows"
        try:
            return _test_groups(context, features)
        except (InputError, InsufficientDataError) as error:
            return str(error).rstrip(".")

    every = features is context.release.features
    return context.once("epsilon.every column", build) if every else build()


def _test_groups(context: AuditContext, features: FeatureTable) -> ReleaseOnlyEvidence:
    release, rng = context.release, context.rng("epsilon", "outsider")
    context.progress.step("bounding ε from the release alone")
    scores = None if release.truth is not None else _scores(context, features)
    counted = counted_rows(context)
    rows = np.arange(len(release)) if counted is None else counted
    metric: Any = fit_metric(features, "raw" if context.plan.metric == "raw" else "l2", rng=rng)
    n = len(rows)
    chosen = np.arange(n) if n <= _MOST_POINTS else np.sort(rng.permutation(n)[:_MOST_POINTS])
    every = len(chosen) == len(features)
    return release_only_evidence(
        metric.transform(features if every else features.take(rows[chosen])),
        SplitRows(
            release.released[rows],
            len(release.outputs),
            context.halves()[rows],
            ordered=release.numeric is not None,
        ),
        rng=rng,
        point_rows=chosen,
        scores=None if scores is None else scores[rows],
        threads=context.plan.threads,
    )


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
