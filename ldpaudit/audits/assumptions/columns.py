"""Columns that were computed from the released label: found, and left out of what bounds learn."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.rows import counted_rows, tested
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.columns import Halves, sampled
from ldpaudit.estimators.assumptions.derived import (
    SUSPICIOUS,
    LabelledRows,
    dependence,
    label_sides,
)
from ldpaudit.estimators.assumptions.derived import derived_columns as find_derived
from ldpaudit.estimators.assumptions.outside import bin_frequencies, explained_by_others
from ldpaudit.estimators.epsilon.release_only.bound import (
    ReleaseOnlyEvidence,
    release_only_evidence,
)
from ldpaudit.release import FeatureTable, IndexArray

DETERMINED: Final = 4.0
"""Nats: a column that tells more than this of the released label alone is no natural feature."""
_MOSTLY: Final = 0.5
_FEWEST: Final = 200
_MOST_COLUMNS: Final = 64


@dataclass(frozen=True)
class ColumnEvidence:
    """What was found out about the feature columns.

    Attributes
    ----------
    derived : tuple of int
        The array columns computed from the released label, or so it seems.
    p_value : float or None
        With true labels: valid, of "given the true label, the other columns say nothing of the
        released one".
    bound_with : float or None
        Without true labels: the bound of ε, in nats, that the derived columns would give.
    """

    derived: tuple[int, ...] = ()
    p_value: float | None = None
    bound_with: float | None = None


def sound_features(context: AuditContext) -> FeatureTable:
    """Return the features without columns that were computed from the released label."""
    return context.once(
        "assumptions.features",
        lambda: context.release.features.without(derived_columns(context)),
    )


def derived_columns(context: AuditContext) -> tuple[int, ...]:
    """Return the array columns computed from the released label, numeric ones first."""
    return column_evidence(context).derived


def feature_blind(context: AuditContext) -> float | None:
    """Return the p-value of "the channel uses no feature", None where it is not tested."""
    return column_evidence(context).p_value


def uses_features(context: AuditContext) -> bool:
    """Return whether the released labels depend on features, at the plan's confidence."""
    p_value = feature_blind(context)
    return p_value is not None and p_value <= 1 - context.plan.confidence


def column_evidence(context: AuditContext) -> ColumnEvidence:
    """Return what was found out about the feature columns."""
    return context.once("assumptions.columns", lambda: _examine(context))


def _examine(context: AuditContext) -> ColumnEvidence:
    if not tested(context) or context.release.features.is_constant():
        return ColumnEvidence()
    if context.release.truth is None:
        return _without_truth(context)
    return _with_truth(context)


def _halves(context: AuditContext, rows: IndexArray) -> Halves:
    """Return the two halves of some rows; a sample where there are many."""
    rng, width = context.rng("assumptions", "halves"), context.release.features.width
    halves = context.halves()[rows]
    learn, test = (sampled(rows[halves == half], width, rng) for half in (0, 1))
    return Halves(learn, test)


def _every(context: AuditContext) -> IndexArray:
    rows = counted_rows(context)
    return np.arange(len(context.release)) if rows is None else rows


def _with_truth(context: AuditContext) -> ColumnEvidence:
    release, halves = context.release, _halves(context, _every(context))
    if min(len(halves.learn), len(halves.test)) < _FEWEST:
        return ColumnEvidence()
    used = np.concatenate([halves.learn, halves.test])
    truth, released = context.truth[used], release.released[used]
    same = release.outputs == release.classes
    cut = len(halves.learn)
    rows = LabelledRows(
        release.features.take(used),
        truth,
        released,
        label_sides(truth, released, same_labels=same),
        Halves(np.arange(cut), np.arange(cut, len(used))),
        int(context.rng("assumptions", "models").integers(2**31)),
    )
    first = dependence(rows)
    suspects = first.suspects() if first.p_value <= SUSPICIOUS else []
    derived = find_derived(rows, suspects) if suspects else ()
    if not derived:
        return ColumnEvidence((), first.p_value)
    return ColumnEvidence(derived, max(first.p_value, dependence(rows, derived).p_value))


def _without_truth(context: AuditContext) -> ColumnEvidence:
    from ldpaudit.audits.mechanism.release_alone import evidence_of

    release, alpha = context.release, 1 - context.plan.confidence
    limit = _limit(context)
    evidence = evidence_of(context, release.features)
    if isinstance(evidence, str) or evidence.bound(alpha).epsilon <= limit:
        return ColumnEvidence()
    alone = _alone(context, alpha)
    suspects = sorted((j for j in alone if alone[j] > limit), key=lambda j: -alone[j])
    if not suspects:
        return ColumnEvidence()
    shares = _explained(context, suspects)
    derived = []
    for j, share in zip(suspects, shares, strict=True):
        natural = 0 < share <= _MOSTLY or (share > 0 and _found_without(context, j, limit))
        if not natural or alone[j] > max(DETERMINED, limit):
            derived.append(j)
    bound = evidence.bound(alpha).epsilon if derived else None
    return ColumnEvidence(tuple(derived), None, bound)


def _limit(context: AuditContext) -> float:
    """Return the claimed ε; where nothing is claimed, what no natural feature tells."""
    channel = aligned_channel(context)
    limit = context.claim.epsilon
    if limit is None and channel is not None:
        limit = channel.epsilon
    return DETERMINED if limit is None or math.isinf(limit) else limit


def _alone(context: AuditContext, alpha: float) -> dict[int, float]:
    """Return the bound of ε that each array column gives alone, in nats."""
    release, rows = context.release, _every(context)
    rng, halves = context.rng("assumptions", "alone"), context.halves()
    bounds = {}
    for j in range(min(release.features.width, _MOST_COLUMNS)):
        m = len(release.outputs)
        scores = bin_frequencies(release.features, j, release.released, m, halves)
        evidence = release_only_evidence(
            None, release.released[rows], m, halves[rows], rng=rng, scores=scores[rows]
        )
        bounds[j] = evidence.bound(alpha).epsilon
    return bounds


def _explained(context: AuditContext, columns: list[int]) -> list[float]:
    release, halves = context.release, _halves(context, _every(context))
    used = np.concatenate([halves.learn, halves.test])
    cut, released = len(halves.learn), release.released[used]
    side = label_sides(released, released, same_labels=True)[1]
    return explained_by_others(
        release.features.take(used),
        columns,
        released,
        side,
        Halves(np.arange(cut), np.arange(cut, len(used))),
        int(context.rng("assumptions", "models").integers(2**31)),
    )


def _found_without(context: AuditContext, column: int, limit: float) -> bool:
    """Return whether the other columns show the violation, too."""
    from ldpaudit.audits.mechanism.release_alone import evidence_of

    evidence = evidence_of(context, context.release.features.without((column,)))
    alpha = 1 - context.plan.confidence
    return isinstance(evidence, ReleaseOnlyEvidence) and evidence.bound(alpha).epsilon > limit
