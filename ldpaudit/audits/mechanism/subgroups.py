"""ε bounded within groups of rows that a model chose on the other half.

With true labels: where does the released label betray the true one too often, or too rarely?
"""

import numpy as np

from ldpaudit.audits.assumptions.afterwards import selected, unchanged_rows
from ldpaudit.audits.assumptions.columns import sound_and_numbered, sound_features
from ldpaudit.audits.assumptions.standing import standing
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT, NOT_DERIVED, UNSELECTED
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.epsilon_proofs import INSIDER_SHARES, SUBGROUPS
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import feature_dependence
from ldpaudit.estimators.epsilon.bounds import class_counts
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.strongest import presumed_channel
from ldpaudit.estimators.epsilon.subgroups import (
    RankedRows,
    SubgroupEvidence,
    betraying,
    subgroup_tests,
    surprise,
)
from ldpaudit.modelling.encoding import BoostingMatrix
from ldpaudit.modelling.screening import TREE_COLUMNS, most_bins, screened
from ldpaudit.randomness import integer_seed
from ldpaudit.release import BoolArray, FloatArray, IndexArray, label_table
from ldpaudit.result import Estimate

SMALLEST_HALF = 200
"""Rows that a half must have for groups to be worth looking for."""
_MOST_ROWS = 240_000
_MOST_FITTED = 40_000
FITTED_SHARE = 2 / 3
"""The share of a half on which the model is fitted; groups are chosen on its other rows."""
_ITERATIONS = 60
_BATCH = 100_000


def subgroup_evidence(context: AuditContext) -> SubgroupEvidence | str:
    """Return the groups found, counted on the other half, or why there are none."""
    return context.once("epsilon.subgroups", lambda: _find(context))


def subgroup_estimate(context: AuditContext, evidence: SubgroupEvidence) -> Estimate:
    """Return the bound as a number of the result."""
    # At the level at which it counts against a claim: other bounds have the rest.
    alpha = (1 - context.plan.confidence) * INSIDER_SHARES[SUBGROUPS]
    bound = evidence.bound(alpha)
    kind, assumptions = standing(context, FEATURE_BLIND, NOT_DERIVED, INDEPENDENT, UNSELECTED)
    return Estimate.lower_bound(
        SUBGROUPS,
        "True labels, groups of rows",
        bound.epsilon,
        1 - alpha,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method="the strongest bound within groups of rows whose released label equals the true one "
        "too often, or too rarely; a model found them on one half, the other half is counted, both "
        f"ways round, corrected for {len(evidence.groups)} groups",
        kind=kind,
        assumptions=assumptions,
    )


def why_no_groups(context: AuditContext) -> str | None:
    """Return why no groups of rows can be compared, None where they can."""
    release = context.release
    if release.truth is None:
        return "there are no true labels"
    dependent = feature_dependence(context)
    if dependent is not None:
        return dependent
    if release.reports is not None:
        return "reports, not labels, were released"
    if selected(context):
        return "rows were left out or repeated because of their released label"
    if sound_features(context).is_constant():
        return "there are no features that tell rows apart"
    if min(len(_half(context, half)) for half in (0, 1)) < SMALLEST_HALF:
        return f"there are fewer than {2 * SMALLEST_HALF} rows with noise of their own"
    if np.count_nonzero(np.bincount(release.truth)) < 2:
        return "fewer than two classes occur among the true labels"
    return None


def _find(context: AuditContext) -> SubgroupEvidence | str:
    reason = why_no_groups(context)
    if reason is not None:
        return reason
    context.progress.step("looking for groups of rows with other noise")
    halves = [_half(context, half) for half in (0, 1)]
    labels = len(context.release.classes), len(context.release.outputs)
    tests = []
    for way, (mine, other) in enumerate((halves, halves[::-1])):
        rng = context.rng("subgroups", "way", str(way))
        order = rng.permutation(mine)
        cut = int(FITTED_SHARE * len(order))
        model = _Ranking(context, order[: min(cut, _MOST_FITTED)], rng)
        choosing, tested = model.ranked(np.sort(order[cut:])), model.ranked(other)
        tests += subgroup_tests(choosing, tested, labels, 0.5, rng)
    return SubgroupEvidence(tuple(tests))


def _half(context: AuditContext, half: int) -> IndexArray:
    """Return the rows of a half that count: where rows share noise, one of each group."""
    rows, counted = context.half(half), unchanged_rows(context)
    if counted is not None:
        rows = np.intersect1d(rows, counted, assume_unique=True)
    return context.sample(rows, _MOST_ROWS // 2, "subgroups", str(half))


class _Ranking:
    """A boosted model of how much more a row's label is betrayed than usual."""

    def __init__(self, context: AuditContext, rows: IndexArray, rng: np.random.Generator) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        self._context = context
        table = sound_and_numbered(context, rows)
        betrays = _betrays(context, rows)
        betrayed = betrays[context.truth[rows], context.release.released[rows]]
        self._design = screened(BoostingMatrix, table, betrayed, TREE_COLUMNS)
        self._model = HistGradientBoostingRegressor(
            learning_rate=0.1,
            max_iter=_ITERATIONS,
            max_leaf_nodes=8,
            l2_regularization=1.0,
            categorical_features=self._design.categorical(),
            max_bins=most_bins(self._design.width, self._design.categorical()),
            early_stopping=False,
            random_state=integer_seed(rng),
        )
        target = surprise(self._rows(np.zeros(len(rows)), rows), betrays)
        self._constant = not self._design.width
        if not self._constant:
            self._model.fit(self._design.transform(table), target)

    def ranked(self, rows: IndexArray) -> RankedRows:
        """Return rows with their scores."""
        scores = np.zeros(len(rows))
        for start in range(0, 0 if self._constant else len(rows), _BATCH):
            batch = slice(start, start + _BATCH)
            matrix = self._design.transform(sound_and_numbered(self._context, rows[batch]))
            scores[batch] = self._model.predict(matrix)
        return self._rows(scores, rows)

    def _rows(self, scores: FloatArray, rows: IndexArray) -> RankedRows:
        context = self._context
        return RankedRows(scores, context.truth[rows], context.release.released[rows])


def _betrays(context: AuditContext, rows: IndexArray) -> BoolArray:
    release, channel = context.release, aligned_channel(context)
    k, m = len(release.classes), len(release.outputs)
    counts = label_table(context.truth[rows], release.released[rows], k, m)
    matrix = presumed_channel(counts) if channel is None else worth_looking_for(channel).matrix
    return betraying(matrix, class_counts(counts))
