"""What the bounds of ε are computed from: counted once per audit run, used by several audits."""

from dataclasses import replace

from ldpaudit.audits.assumptions.afterwards import label_counts as label_counts
from ldpaudit.audits.assumptions.afterwards import selected
from ldpaudit.audits.assumptions.columns import sound_features
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND as FEATURE_BLIND
from ldpaudit.audits.assumptions.stated import INDEPENDENT as INDEPENDENT
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.release_alone import evidence_of
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.release_only.bound import (
    ReleaseOnlyEvidence,
)
from ldpaudit.estimators.epsilon.strongest import SELECTED, BoundEvidence, epsilon_evidence


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
    evidence = epsilon_evidence(label_counts(context), matrix, context.rng("epsilon", "insider"))
    # A selection by the released label leaves odds ratios as they were.
    if evidence is not None and selected(context):
        return replace(evidence, methods=SELECTED)
    return evidence


def outsider_evidence(context: AuditContext) -> ReleaseOnlyEvidence | str:
    """Return the evidence of the release alone, or the reason why there is none.

    Columns that were computed from the released label take no part.
    """
    return context.once("epsilon.outsider", lambda: _count_outsider(context))


def _count_outsider(context: AuditContext) -> ReleaseOnlyEvidence | str:
    reason = feature_dependence(context)
    return evidence_of(context, sound_features(context)) if reason is None else reason
