"""Certified evidence about a channel that may use the features: rows with equal features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.models.cells import Cells
from ldpaudit.audits.claimed_channel import model_claim
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.estimators.epsilon.matched.bound import MatchedTest, matched_bound, matched_tests
from ldpaudit.estimators.epsilon.matched.design import designed_matching
from ldpaudit.estimators.epsilon.matched.rows import RATIOS, MatchedCounts, Matching, match
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, Release, label_table

_FEWEST_MATCHES: Final = 20
_SAME_DIGITS: Final = 6


SAME_CHANNEL: Final = (
    "rows with the same features went through the same channel: the mechanism used no feature "
    "besides those audited"
)


@dataclass(frozen=True)
class Certificate:
    """A certified lower bound of ε, in nats, at level 1 − alpha, from n rows; ``words`` say how.

    ``assumption``: what it rests on besides independent rows.
    """

    epsilon: float
    n: int
    words: str
    assumption: str


@dataclass(frozen=True)
class MatchedEvidence:
    """Counts among rows with equal features.

    Attributes
    ----------
    counts : sequence of MatchedCounts
        Every group, with 1, 4 and 16 controls per case.
    designed : MatchedCounts or None
        The groups in which the claimed mechanism would show most, where that is known.
    """

    counts: Sequence[MatchedCounts]
    designed: MatchedCounts | None = None
    name: str = "cells"
    title: str = "equal rows"

    def bound(self, alpha: float) -> Certificate:
        """Return the bound at a one-sided error probability."""
        bound = matched_bound(self.counts, alpha, self.designed)
        words = (
            f"rows with equal features and other true labels, {bound.method} bound; corrected for "
            f"{len(self.tests())} bounds"
        )
        return Certificate(bound.epsilon, bound.n, words, SAME_CHANNEL)

    def tests(self) -> list[MatchedTest]:
        """Return the tests; the bound is that of the strongest."""
        return matched_tests(self.counts, self.designed)


def matched_evidence(context: AuditContext) -> MatchedEvidence | None:
    """Return the counts among rows with equal features, None with fewer than 20 matches."""
    return context.once("observational.matched", lambda: _matched(context))


def _matched(context: AuditContext) -> MatchedEvidence | None:
    release, rng = context.release, context.rng("observational", "matching")
    table, rows = guessed_events(context)
    cells = _alike(release, rows)
    truth, released = context.truth[rows], release.released[rows]
    k = len(release.classes)
    scores = _drawn_with(context, cells, rows)
    known = scores if release.public_posterior is not None else None

    def count(matching: Matching) -> MatchedCounts:
        event, chance = table[matching.targets[cells], released], None
        if known is not None and len(matching.cases):
            groups = cells[matching.cases]
            chance = float(known[groups, matching.targets[groups]].mean())
        return MatchedCounts.of(matching, event, chance)

    counts = tuple(count(match(cells, truth, k, ratio, rng)) for ratio in RATIOS)
    if counts[0].cases < _FEWEST_MATCHES:
        return None
    claim = model_claim(context)
    if scores is None or claim is None:
        return MatchedEvidence(counts)
    rng = context.rng("observational", "design")
    chosen = designed_matching(cells, truth, scores, claim.noise, rng)
    return MatchedEvidence(counts, None if chosen is None else count(chosen))


def _alike(release: Release, rows: IndexArray) -> IndexArray:
    """Return the group of each row: equal features and, where it is known, equal P̂(y | x)."""
    cells = Cells.fit(release.features.take(rows)).members.astype(np.int64)
    if release.public_posterior is None:
        return cells
    known = np.round(release.public_posterior[rows], _SAME_DIGITS)
    keys = np.column_stack([cells.astype(np.float64), known])
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _drawn_with(context: AuditContext, cells: IndexArray, rows: IndexArray) -> FloatArray | None:
    """Return roughly with what probabilities a model-based claim draws each group's labels.

    From the public P̂(y | x), or else from a model of the true label: from features and true labels
    alone. float64 of shape (g, k); None for other mechanisms.
    """
    claim, scores = model_claim(context), context.release.public_posterior
    if claim is None:
        return None
    if scores is None:
        scores = cross_fitted_posterior(context, "truth")
    sizes = np.bincount(cells)
    sums = [np.bincount(cells, weights=column) for column in scores[rows].T]
    means = np.stack(sums, axis=1) / sizes[:, None]
    return np.asarray(claim.floor + (1 - len(claim.classes) * claim.floor) * means)


def guessed_events(context: AuditContext) -> tuple[BoolArray, IndexArray]:
    """Return which outputs point to which label, and the rows on which that may be tested.

    An output that is a class points to it. Other outputs are learnt on one half of the rows, and
    only the other half is tested.

    Returns
    -------
    bool array of shape (k, m), int64 array of shape (r,)
    """
    return context.once("observational.events", lambda: _events(context))


def _events(context: AuditContext) -> tuple[BoolArray, IndexArray]:
    release = context.release
    if release.outputs == release.classes:
        return np.eye(len(release.classes), dtype=bool), np.arange(len(release))
    table = _learnt_channel(context)
    others = (table.sum(axis=0) - table) / (len(table) - 1)
    return table > others, context.half(1)


def _learnt_channel(context: AuditContext) -> FloatArray:
    release, rows = context.release, context.half(0)
    k, m = len(release.classes), len(release.outputs)
    counts = label_table(context.truth[rows], release.released[rows], k, m) + 0.5
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def table_guess(table: BoolArray, context: AuditContext) -> IntArray:
    """Return for each output the label that it points to most, int32 of shape (m,)."""
    release = context.release
    if release.outputs == release.classes:
        return np.arange(len(release.classes), dtype=np.int32)
    channel = _learnt_channel(context)
    lift = np.where(table, channel / channel.mean(axis=0), 0.0)
    return np.asarray(lift.argmax(axis=0), dtype=np.int32)
