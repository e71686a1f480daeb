"""What the bounds of ε are computed from: counted once per audit run, used by several audits."""

from dataclasses import replace
from typing import Any, Protocol

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
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.release_only.bound import (
    ReleaseOnlyEvidence,
)
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.release import label_table
from ldpaudit.result import SMALLEST_CELL
from ldpaudit.result.hiding import is_small, just_above


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


def _count_insider(
    context: AuditContext, counts: npt.NDArray[np.int64] | None = None
) -> BoundEvidence | None:
    channel = aligned_channel(context)
    matrix = None if channel is None else worth_looking_for(channel).matrix
    counts = label_counts(context) if counts is None else counts
    return epsilon_evidence(counts, matrix, context.rng("epsilon", "insider"))


def shown_evidence(context: AuditContext) -> BoundEvidence | None:
    """Return the insider's evidence as far as it is shown: counts of 1 to 9 people count as 9.

    A bound from them is shown only where it is not above the one from the true counts.
    """
    insider = insider_evidence(context)
    if insider is None:
        return None
    counts = label_counts(context)
    blurred = without_small_cells(counts)
    if (blurred == counts).all():
        return insider
    return context.once("epsilon.shown", lambda: _count_insider(context, blurred))


class Strongest(Protocol):
    """Counts with a bound of ε at every level."""

    def strongest(self, alpha: float) -> EpsilonBound:
        """Return the largest lower bound of ε, valid at level 1 − alpha."""


def shown_bound(
    counted: Strongest, shown: Strongest | None, claimed: float | None, alpha: float
) -> float:
    """Return the bound that may be shown; above the claim where the one of all counts is."""
    exact = counted.strongest(alpha).epsilon
    if shown is counted:
        return exact
    found = 0.0 if shown is None else min(exact, shown.strongest(alpha).epsilon)
    return found if claimed is None or exact <= claimed else max(found, just_above(claimed, exact))


def no_more(bound: EpsilonBound, shown: EpsilonBound | None, cell: int) -> EpsilonBound:
    """Return a bound as it may be shown where counts of ``cell`` people are behind it."""
    if not is_small(cell):
        return bound
    least = 0.0 if shown is None else min(bound.epsilon, shown.epsilon)
    return replace(bound, epsilon=least, smallest_cell=cell)


def without_small_cells(counts: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Return counts by label and output with 9 for each of 1 to 9, all sums kept where possible.

    How many people have an output is public, and how many a large class has is shown: whoever knows
    both can follow a count through its row and column. So people are exchanged between two labels
    and two outputs, which leaves the sums as they are, until the small count is 9. It comes out the
    same for each small count that the sums allow.
    """
    table = np.array(counts, dtype=np.int64)
    for y, z in np.argwhere((table > 0) & (table < SMALLEST_CELL)):
        other, common = int(table[:, z].argmax()), int(table[y].argmax())
        people = SMALLEST_CELL - 1 - table[y, z]
        people = min(people, table[other, z], table[y, common])
        if other != y and common != z and people > 0:
            table[y, z] += people
            table[other, common] += people
            table[y, common] -= people
            table[other, z] -= people
    return table


def outsider_evidence(context: AuditContext) -> ReleaseOnlyEvidence | str:
    """Return the evidence of the release alone, or the reason why there is none.

    Columns that were computed from the released label take no part.
    """
    return context.once("epsilon.outsider", lambda: _count_outsider(context))


def _count_outsider(context: AuditContext) -> ReleaseOnlyEvidence | str:
    reason = feature_dependence(context)
    return evidence_of(context, sound_features(context)) if reason is None else reason
