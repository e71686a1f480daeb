"""What the bounds of ε are computed from: counted once per audit run, used by several audits."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.audits.assumptions.stated import FEATURE_BLIND as FEATURE_BLIND
from ldpaudit.audits.assumptions.stated import INDEPENDENT as INDEPENDENT
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.release_only.bound import (
    ReleaseOnlyEvidence,
    release_only_evidence,
)
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.estimators.neighbors.metric import fit_metric
from ldpaudit.release import Float32Array, IndexArray, label_table

_MOST_POINTS = 400_000


def label_counts(context: AuditContext) -> npt.NDArray[np.int64]:
    """Return how many rows have each true label and output, int64 of shape (k, m)."""
    release = context.release
    k, m = len(release.classes), len(release.outputs)
    return label_table(context.truth, release.released, k, m)


def feature_dependence(context: AuditContext) -> str | None:
    """Return why bounds for feature-blind channels do not apply to the claim, None if they do."""
    claim = context.claim
    if claim.traits.rows == "bags":
        return "labels were released as the sums of bags, so rows are not independent"
    if not claim.traits.label_depends_on_features:
        return None
    return (
        f"the mechanism {claim.name!r} uses the features, so a released label that follows them "
        "need not come from the true label"
    )


def insider_evidence(context: AuditContext) -> BoundEvidence | None:
    """Return the evidence of true against released labels.

    None where there are no true labels, fewer than two of them occur, or the channel depends on
    the features.
    """
    if context.release.truth is None or feature_dependence(context) is not None:
        return None
    return context.once("epsilon.insider", lambda: _count_insider(context))


def _count_insider(context: AuditContext) -> BoundEvidence | None:
    channel = aligned_channel(context)
    matrix = None if channel is None else worth_looking_for(channel).matrix
    return epsilon_evidence(label_counts(context), matrix, context.rng("epsilon", "insider"))


def outsider_evidence(context: AuditContext) -> ReleaseOnlyEvidence | str:
    """Return the evidence of the release alone, or the reason why there is none.

    Groups come from balls around random rows; without true labels, where this is the only bound,
    also from a model of the released label.
    """
    return context.once("epsilon.outsider", lambda: _count_outsider(context))


def _count_outsider(context: AuditContext) -> ReleaseOnlyEvidence | str:
    reason = feature_dependence(context)
    if reason is None and context.release.features.is_constant():
        reason = "there are no features that tell rows apart"
    if reason is not None:
        return reason
    try:
        return _test_groups(context)
    except (InputError, InsufficientDataError) as error:
        return str(error).rstrip(".")


def _test_groups(context: AuditContext) -> ReleaseOnlyEvidence:
    release, rng = context.release, context.rng("epsilon", "outsider")
    context.progress.step("bounding ε from the release alone")
    points, rows = _points(context, rng)
    insider = release.truth is not None
    return release_only_evidence(
        points,
        release.released,
        len(release.outputs),
        context.halves(),
        rng=rng,
        point_rows=rows,
        scores=None if insider else cross_fitted_posterior(context, "released"),
        ordered=release.numeric is not None,
        threads=context.plan.threads,
    )


def _points(context: AuditContext, rng: np.random.Generator) -> tuple[Float32Array, IndexArray]:
    features = context.release.features
    metric: Any = fit_metric(features, "raw" if context.plan.metric == "raw" else "l2", rng=rng)
    n = len(features)
    rows = np.arange(n) if n <= _MOST_POINTS else np.sort(rng.permutation(n)[:_MOST_POINTS])
    chosen = features if n <= _MOST_POINTS else features.take(rows)
    return metric.transform(chosen), rows
