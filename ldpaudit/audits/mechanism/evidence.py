"""What the bounds of ε are computed from: counted once per audit run, used by several audits."""

import numpy as np
import numpy.typing as npt

from ldpaudit.audits.assumptions.columns import sound_features
from ldpaudit.audits.assumptions.rows import counted_rows
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND as FEATURE_BLIND
from ldpaudit.audits.assumptions.stated import INDEPENDENT as INDEPENDENT
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.release_alone import evidence_of
from ldpaudit.audits.part import over_all_rows
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.release_only.bound import (
    ReleaseOnlyEvidence,
)
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.release import label_table


def label_counts(context: AuditContext) -> npt.NDArray[np.int64]:
    """Return how many rows have each true label and output, int64 of shape (k, m).

    All rows of a large release count, too. Where rows share noise, one row of each group counts.
    """
    every = over_all_rows(context)
    release, rows = every.release, counted_rows(every)
    k, m = len(release.classes), len(release.outputs)
    counted = slice(None) if rows is None else rows
    return label_table(every.truth[counted], release.released[counted], k, m)


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

    Columns that were computed from the released label take no part.
    """
    return context.once("epsilon.outsider", lambda: _count_outsider(context))


def _count_outsider(context: AuditContext) -> ReleaseOnlyEvidence | str:
    reason = feature_dependence(context)
    return evidence_of(context, sound_features(context)) if reason is None else reason
