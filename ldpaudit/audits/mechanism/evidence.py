"""What the bounds of ε are computed from: counted once per audit run, used by several audits."""

# True against released labels; groups of rows that a model chose on the other half; and the release
# alone.

from collections.abc import Callable

import numpy as np

from ldpaudit.audits.assumptions.causes import without_which
from ldpaudit.audits.assumptions.changed import unchanged_rows
from ldpaudit.audits.assumptions.doubts import Doubt
from ldpaudit.audits.assumptions.standing import (
    every_count,
    label_counts,
    rests_on_known,
    selected,
    sound_and_numbered,
    sound_features,
)
from ldpaudit.audits.assumptions.without_truth import evidence_of
from ldpaudit.audits.before import unknown
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import aligned_channel, feature_dependence
from ldpaudit.error_budget import ONE_HALF, PROOFS
from ldpaudit.estimators.epsilon.bounds import Strongest, class_counts
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.release_only import ReleaseOnlyEvidence
from ldpaudit.estimators.epsilon.strongest import (
    BoundEvidence,
    RankedRows,
    betraying,
    claimed_evidence,
    presumed_channel,
    subgroup_tests,
    surprise,
)
from ldpaudit.models.encoding import BoostingMatrix
from ldpaudit.models.screening import TREE_COLUMNS, most_bins, screened
from ldpaudit.models.trees import fit_boosting
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FloatArray, IndexArray, label_table

SMALLEST_HALF = 200  # Rows that a half must have for groups to be worth looking for.
# The share of a half on which the model is fitted; groups are chosen on its other rows.
FITTED_SHARE = 2 / 3
_MOST_ROWS_GROUPED = 240_000
_MOST_FITTED = 40_000
_ITERATIONS = {"full": 60, "small": 15}
_BATCH = 100_000


@remembered("epsilon.insider")
def insider_evidence(context: AuditContext) -> BoundEvidence | None:
    """Return the evidence of true against released labels."""
    # None where there are no true labels, fewer than two of them occur, or the channel depends on
    # the features.
    if context.release.truth is None or feature_dependence(context) is not None:
        return None
    channel = aligned_channel(context)
    matrix = None if channel is None else worth_looking_for(channel).matrix
    evidence = claimed_evidence(label_counts(context), matrix, context.rng("epsilon", "insider"))
    # A selection by the released label leaves odds ratios as they were.
    if evidence is not None and selected(context):
        return evidence.of_selected()
    return evidence


@remembered("epsilon.insider of all rows")
def insider_evidence_of_all(context: AuditContext) -> BoundEvidence | None:
    """Return the evidence of all rows, where those counted may be chosen by released labels."""
    # Whether rows share noise then rests on columns that may have been computed from released
    # labels: a bound must hold either way.
    counts = every_count(context)
    if counts is None or feature_dependence(context) is not None:
        return None
    channel = aligned_channel(context)
    matrix = None if channel is None else worth_looking_for(channel).matrix
    return claimed_evidence(counts, matrix, context.rng("epsilon", "insider of all rows"))


@remembered("epsilon.outsider")
def outsider_evidence(context: AuditContext) -> ReleaseOnlyEvidence | str:
    """Return the evidence of the release alone, or the reason why there is none."""
    # Where columns are known to be from before the noise, the others take no part.
    return feature_dependence(context) or evidence_of(context, sound_features(context))


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
        return "no features distinguish the rows"
    if min(len(_half(context, half)) for half in (0, 1)) < SMALLEST_HALF:
        return f"there are fewer than {2 * SMALLEST_HALF} rows with noise of their own"
    if np.count_nonzero(np.bincount(release.truth)) < 2:
        return "fewer than two classes occur among the true labels"
    return None


@remembered("epsilon.subgroups")
def subgroup_evidence(context: AuditContext) -> Strongest[BoundEvidence] | str:
    """Return the groups found, counted on the other half, or why there are none."""
    reason = why_no_groups(context)
    if reason is not None:
        return reason
    context.progress.step("looking for groups of rows with other noise")
    return _subgroups(context, ())


@remembered("epsilon.subgroups in doubt")
def subgroup_doubt(context: AuditContext) -> Doubt | None:
    """Return the unknown columns by which a group's bound exceeds the claim; None if none does.

    None, too, where all rows together prove as much: the columns explain nothing then.
    """
    groups, limit = subgroup_evidence(context), context.claim.epsilon
    if isinstance(groups, str) or limit is None or rests_on_known(context) or not unknown(context):
        return None
    level = PROOFS.of(1 - context.plan.confidence, "subgroups")
    everyone, bound = insider_evidence(context), groups.bound(level).epsilon
    # At the level at which it counts against a claim, as the bound of groups is.
    of_all = PROOFS.of(1 - context.plan.confidence, "insider")
    proven = 0.0 if everyone is None else everyone.bound(of_all).epsilon
    most = max(limit, proven)
    if bound <= most:
        return None

    def exceeds(columns: tuple[int, ...]) -> bool:
        return _subgroups(context, columns).bound(level).epsilon > most

    return Doubt(without_which(context, exceeds), bound=bound)


def _subgroups(context: AuditContext, without: tuple[int, ...]) -> Strongest[BoundEvidence]:
    """Return the groups found without a look at some columns, counted on the other half."""
    halves = [_half(context, half) for half in (0, 1)]
    labels = len(context.release.classes), len(context.release.outputs)
    tests: list[BoundEvidence] = []
    for way, (mine, other) in enumerate((halves, halves[::-1])):
        rng = context.rng("subgroups", "way", str(way))
        order = rng.permutation(mine)
        cut = int(FITTED_SHARE * len(order))
        ranked = _ranking(context, order[: min(cut, _MOST_FITTED)], rng, without)
        choosing, tested = ranked(np.sort(order[cut:])), ranked(other)
        tests += subgroup_tests(choosing, tested, labels, ONE_HALF, rng)
    return Strongest(tests)


def _half(context: AuditContext, half: int) -> IndexArray:
    """Return the rows of a half that count: where rows share noise, one of each group."""
    rows, counted = context.half(half), unchanged_rows(context)
    if counted is not None:
        rows = np.intersect1d(rows, counted, assume_unique=True)
    return context.sample(rows, _MOST_ROWS_GROUPED // 2, "subgroups", str(half))


def _ranking(
    context: AuditContext, rows: IndexArray, rng: np.random.Generator, without: tuple[int, ...]
) -> Callable[[IndexArray], RankedRows]:
    """Fit a boosted model of how much more a row's label is betrayed than usual; it scores rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    release, channel = context.release, aligned_channel(context)

    def scored(rows: IndexArray, scores: FloatArray) -> RankedRows:
        return RankedRows(scores, context.truth[rows], release.released[rows])

    counts = label_table(
        context.truth[rows], release.released[rows], len(release.classes), len(release.outputs)
    )
    matrix = presumed_channel(counts) if channel is None else worth_looking_for(channel).matrix
    betrays = betraying(matrix, class_counts(counts))
    table = sound_and_numbered(context, rows, without)
    betrayed = betrays[context.truth[rows], release.released[rows]]
    design = screened(BoostingMatrix, table, betrayed, TREE_COLUMNS)
    if not design.width:
        return lambda rows: scored(rows, np.zeros(len(rows)))
    model = HistGradientBoostingRegressor(
        learning_rate=0.1,
        max_iter=_ITERATIONS[context.plan.effort],
        max_leaf_nodes=8,
        l2_regularization=1.0,
        categorical_features=design.categorical(),
        max_bins=most_bins(design.width, design.categorical()),
        early_stopping=False,
        random_state=integer_seed(rng),
    )
    target = surprise(scored(rows, np.zeros(len(rows))), betrays)
    fit_boosting(model, design.transform(table), target)

    def ranked(rows: IndexArray) -> RankedRows:
        batches = np.split(rows, range(_BATCH, len(rows), _BATCH))
        tables = (sound_and_numbered(context, batch, without) for batch in batches)
        scores = [model.predict(design.transform(table)) for table in tables]
        return scored(rows, np.concatenate(scores))

    return ranked
