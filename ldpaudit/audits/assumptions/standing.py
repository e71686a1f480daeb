"""What bounds may use: columns from before, unchanged rows, assumptions that still stand."""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ldpaudit.audits.assumptions.causes import named_in_doubt, telling, without_which
from ldpaudit.audits.assumptions.noise import SUSPICIOUS, NoiseFinding, WhiteNoise
from ldpaudit.audits.assumptions.places import groups
from ldpaudit.audits.assumptions.rows import (
    Counted,
    clusters,
    counted,
    counted_rows,
    dependence_of,
    noise_clusters,
    noise_of,
    shared,
    tested,
)
from ldpaudit.audits.assumptions.views import ordered_by_reports
from ldpaudit.audits.before import before, kept_features, unknown
from ldpaudit.audits.interface import AuditContext, Memo, remembered
from ldpaudit.audits.models import aligned_channel, cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.assumptions.afterwards import (
    fixed_by_model,
    fixed_rows,
    is_selected,
    numbers_go_together,
    times_selected,
    truth_alignment,
)
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.estimators.departures import Groups
from ldpaudit.estimators.epsilon.release_only import (
    ReleaseOnlyEvidence,
    SplitRows,
    release_only_evidence,
)
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.models.screening import association
from ldpaudit.release import BoolArray, FeatureTable, FloatArray, IndexArray, label_table
from ldpaudit.result import Finding, Kind
from ldpaudit.result.stated import (
    FEATURE_BLIND,
    INDEPENDENT,
    NOT_DERIVED,
    NOT_INDEPENDENT,
    NOT_KNOWN,
    REFUTED,
    UNSELECTED,
)

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


# What a policy's limit is where nothing is claimed: no natural feature reveals more, in nats.
_DETERMINED: Final = 4.0
# Columns that are left out one by one, the clearest with the released label.
_MOST_SUSPECTS: Final = 6


@remembered("assumptions.features")
def sound_features(context: AuditContext) -> FeatureTable:
    """Return the features from before the noise; all of them where none is known to be."""
    known = before(context)
    return context.release.features.without(unknown(context) if known else ())


def rests_on_known(context: AuditContext) -> bool:
    """Return whether :func:`sound_features` were all there before the noise."""
    return bool(before(context)) or not context.release.features.width


def sound_and_numbered(
    context: AuditContext, rows: IndexArray, without: tuple[int, ...] = ()
) -> FeatureTable:
    """Return sound features of some rows, and their numbers unless released labels order them.

    And whether a row's features are the original ones, where these are known.
    """
    # Only where no column is known are some left out, so places are those of all columns.
    taken = sound_features(context).without(without).take(rows)
    more = list[BoolArray | IndexArray]()
    if not noise_of(context).ordered:
        more.append(rows)
    kept = kept_features(context)
    if kept is not None:
        more.append(kept[rows])
    added = [column.astype(np.float32)[:, None] for column in more]
    return replace(taken, numeric=np.concatenate([taken.numeric, *added], axis=1))


def uses_features(context: AuditContext) -> bool:
    """Return whether noise depends on columns from before it, or on places in the file."""
    return feature_blind(context) is not None and _dependence(context) <= SUSPICIOUS


def _dependence(context: AuditContext) -> float:
    p_value = feature_blind(context)
    return 1.0 if p_value is None else p_value


@remembered("assumptions.blind")
def feature_blind(context: AuditContext) -> float | None:
    """Return the p-value of "noise depends on no column from before and no place", if tested."""
    # Of the rows whose labels no rule overwrote afterwards.
    if context.release.truth is None or not tested(context):
        return None
    found = dependence_of(context)
    if found is None:
        return None
    times = repeated(context)
    p_value = found.p_value(known=True, dependence=True, times=times)
    left = _without_changed(context)
    if left is None:
        return p_value
    return max(p_value, left.p_value(known=True, dependence=True, times=times))


@remembered("assumptions.repeated")
def repeated(context: AuditContext) -> float:
    """Return how many times a row may stand in the table because of its released label, from 1."""
    # Of rows that were repeated each copy bets on the same noise: what is won counts once.
    channel, release = aligned_channel(context), context.release
    if channel is None or release.truth is None:
        return 1.0
    counts = label_table(release.truth, release.released, *channel.matrix.shape)
    return times_selected(counts, channel.matrix)


@dataclass(frozen=True)
class Doubt:
    """What columns say that may have been computed from released labels after the noise.

    ``columns``: array places, the clearest first, without which nothing would speak against it;
    ``finding``: by white noise, or None where a bound says it; ``bound``: the bound of ε that they
    would give, in nats, the least over leaving out each; ``with_all``: with none left out;
    ``of``: the rows in which it was found, None for all.
    """

    columns: tuple[int, ...]
    finding: NoiseFinding | None = None
    bound: float | None = None
    with_all: float | None = None
    of: AuditContext | None = None


@remembered("assumptions.doubt")
def doubt(context: AuditContext) -> Doubt | None:
    """Return what unknown columns say against the claim, None where they say nothing."""
    if not tested(context):
        return None
    if context.release.truth is None:
        return _doubt_alone(context)
    apart, of = dependence_of(context), context
    found = [one for one in shared(context) if not one.known]
    if not found and apart is not None:
        found = [one for one in apart.clear(known=False) if one.is_dependence]
        rows = counted(context).rows
        of = context.on_rows(rows) if shared(context) and rows is not None else context
    left = _without_changed(context)
    if not found or (left is not None and not left.clear(known=False)):
        return None
    return Doubt(named_in_doubt(of, found), telling(found)[0], of=of)


def _doubt_alone(context: AuditContext) -> Doubt | None:
    """Return the unknown columns that bound ε above the claim, the single one that does, if any."""
    limit = largest_expected(context)
    places = unknown(context)
    with_all = _bound_without(context, ()) if places and limit < math.inf else 0.0
    if with_all <= limit:
        return None
    bounds = {j: _bound_without(context, (j,)) for j in _suspects(context, places)}
    alone = [j for j, bound in bounds.items() if bound <= limit]
    least = min(bounds.values(), default=math.inf)
    some = tuple(alone) or without_which(
        context, lambda some: _bound_without(context, some) > limit, _MOST_SUSPECTS
    )
    return Doubt(some, bound=least, with_all=with_all)


def _suspects(context: AuditContext, places: tuple[int, ...]) -> list[int]:
    """Return the unknown columns that go most clearly with the released label."""
    release = context.release
    scores = association(release.features, release.released)
    order = sorted(places, key=lambda j: -scores[j])
    return order[:_MOST_SUSPECTS]


def largest_expected(context: AuditContext) -> float:
    """Return the claimed ε; where nothing is claimed, what no natural feature reveals."""
    channel = aligned_channel(context)
    limit = context.claim.epsilon
    if limit is None and channel is not None:
        limit = channel.epsilon
    return _DETERMINED if limit is None or math.isinf(limit) else limit


def _bound_without(context: AuditContext, columns: tuple[int, ...]) -> float:
    """Return the bound of ε from the release alone without some columns, in nats; 0 for none."""
    evidence = evidence_of(context, context.release.features.without(columns))
    if isinstance(evidence, str):
        return 0.0
    return evidence.bound(1 - context.plan.confidence).epsilon


@remembered("assumptions.changed")
def changed_rows(context: AuditContext) -> IndexArray:
    """Return the rows whose released labels a rule on features fixed after the noise, int64."""
    # Only where that explains why noise depends on the features.
    nothing = np.empty(0, dtype=np.int64)
    # Where rows share noise, groups of few people are alike without a rule.
    dependent = [one for one in noise_of(context).clear() if one.is_dependence]
    if not dependent or shared(context):
        return nothing
    release = context.release
    codes = (codes for one in groups(context) for codes in _of_rule(one))
    fixed = fixed_rows(codes, context.truth, release.released)
    # Groups that fix most labels are copies of the released label, no rule.
    if not len(fixed) or 2 * len(fixed) > len(release):
        return nothing
    return fixed


# Between the largest chance that a claim gives a released label and 1: how sure a model must be.
_SURER: Final = 0.25


@remembered("assumptions.foreseen labels")
def foreseen_labels(context: AuditContext) -> IndexArray:
    """Return the rows whose released labels a rule on any columns fixed, int64 in order."""
    # A column that was made from released labels foresees them, too: no bound leaves these out.
    channel, nothing = aligned_channel(context), np.empty(0, dtype=np.int64)
    dependent = [one for one in noise_of(context).clear() if one.is_dependence]
    if channel is None or context.release.features.is_constant():
        return nothing
    if not dependent or shared(context):
        return nothing
    largest = float(channel.matrix.max())
    chances = cross_fitted_posterior(context, "released")
    sure = chances.max(axis=1) > largest + _SURER * (1 - largest)
    foreseen = np.where(sure, chances.argmax(axis=1), -1)
    fixed = fixed_by_model(foreseen, context.truth, context.release.released, channel.matrix)
    return nothing if 2 * len(fixed) > len(context.release) else fixed


# Of ranges that follow each other so many are one: a rule may fix few rows of each.
_RANGES_TOGETHER: Final = (1, 2, 4, 8, 16)


def _of_rule(group: Groups) -> list[IndexArray]:
    """Return the codes of groups whose released labels a rule on one column may have fixed."""
    if group.name == "range":
        return [group.every // together for together in _RANGES_TOGETHER]
    return [group.every] if group.name == "value" else []


@remembered("assumptions.changing")
def changed_columns(context: AuditContext) -> tuple[int, ...]:
    """Return the array columns by which released labels are fixed, those from before first."""
    fixed = _changed(context)
    if not len(fixed):
        return ()
    # A column from before explains a label that one computed from released labels repeats.
    known, left, found = set(before(context)), set(fixed.tolist()), list[int]()
    every = [one for one in groups(context) if one.name in ("value", "range")]
    for one in sorted(every, key=lambda one: not set(one.columns) <= known):
        rows = fixed_rows(_of_rule(one), context.truth, context.release.released)
        if not left.isdisjoint(rows.tolist()):
            found += [place for place in one.columns if place not in found]
            left.difference_update(rows.tolist())
    return tuple(found)


@remembered("assumptions.without changed")
def _without_changed(context: AuditContext) -> WhiteNoise | None:
    """Return where noise is not white in the rows that no rule changed; None where none did."""
    fixed = np.union1d(changed_rows(context), foreseen_labels(context))
    if not len(fixed) or 2 * len(fixed) > len(context.release):
        return None
    left = np.setdiff1d(np.arange(len(context.release)), fixed, assume_unique=True)
    return noise_of(context.on_rows(left))


def over_all_rows(context: AuditContext) -> AuditContext:
    """Return the context of all rows, for counts that can be made of them."""
    # What is known of columns, and that rows share no noise, comes from the part that was looked
    # at. Where rows of the part share noise, belong together or were changed after the noise, it is
    # the context of the part.
    if context.whole is None or clusters(context) is not None:
        return context
    part = counted(context)
    if part.rows is not None or not part.holds or len(_changed(context)):
        return context
    given = {"rows.clusters": None, "rows.counted": Counted(None)}
    memo = context.once("all rows", lambda: Memo(given | _of_columns(context)))
    return context.on_rows(None, memo=memo)


def one_row_of_each_group(context: AuditContext) -> AuditContext:
    """Return the context of one random row of each stated group, or the same without groups."""
    # What is known of columns and of shared noise comes from all rows.
    groups = context.release.groups
    if groups is None:
        return context

    def build() -> Memo:
        rows = one_of_each(groups, context.rng("one row of each group"))
        found = noise_clusters(context)
        codes = None if found is None else found[rows]
        if codes is not None and len(np.unique(codes)) == len(codes):
            codes = None
        of_all = counted(context)
        places = np.arange(len(rows))
        if codes is not None:
            places = one_of_each(codes, context.rng("counted of groups"))
        if of_all.spacing is not None:  # Distances are those in the file.
            places = np.searchsorted(rows, of_all.spacing.apart(rows[places]))
        apart = None if len(places) == len(rows) else places
        given = {"rows": rows, "rows.clusters": codes, "rows.counted": replace(of_all, rows=apart)}
        return Memo(given | _of_columns(context))

    memo = context.once("one row of each group", build)
    return context.on_rows(memo["rows"], memo=memo)


def _changed(context: AuditContext) -> IndexArray:
    if context.release.truth is None or not tested(context):
        return np.empty(0, dtype=np.int64)
    return changed_rows(context)


def _of_columns(context: AuditContext) -> dict[str, Any]:
    """Return what is known of a context's columns, for a context of other rows of it."""
    known: dict[str, Any] = {
        "assumptions.changed": np.empty(0, dtype=np.int64),
        "assumptions.without changed": None,
        "assumptions.blind": feature_blind(context),
        "assumptions.doubt": doubt(context),
    }
    if context.release.truth is not None and tested(context):
        known["noise.white"] = noise_of(context)
    return known


def unchanged_rows(context: AuditContext) -> IndexArray | None:
    """Return the rows whose labels a bound may count, int64, in order; None for all of them."""
    rows, fixed = counted_rows(context), _changed(context)
    if not len(fixed):
        return rows
    every = np.arange(len(context.release)) if rows is None else rows
    return np.setdiff1d(every, fixed, assume_unique=True)


def label_counts(context: AuditContext) -> IndexArray:
    """Return how many rows have each true label and output, int64 of shape (k, m)."""
    # All rows of a large release count, too. Where rows share noise, one row of each group counts,
    # and none whose label was changed after the noise.
    every = over_all_rows(context)
    release, rows = every.release, unchanged_rows(every)
    k, m = len(release.classes), len(release.outputs)
    used = slice(None) if rows is None else rows
    return label_table(every.truth[used], release.released[used], k, m)


def every_count(context: AuditContext) -> IndexArray | None:
    """Return how many of all rows have each true label and output, where a bound must hold for
    them as well; None where it need not.
    """
    release = context.release
    if release.truth is None or counted(context).known:
        return None
    k, m = len(release.classes), len(release.outputs)
    return label_table(context.truth, release.released, k, m)


@remembered("assumptions.selected")
def selected(context: AuditContext) -> bool:
    """Return whether the rows that bounds count seem selected by their released label."""
    channel = None if context.release.truth is None else aligned_channel(context)
    if channel is None or uses_features(context) or not counted(context).holds:
        return False
    return is_selected(label_counts(context), channel.matrix)


def selected_before(context: AuditContext) -> bool:
    """Return whether all rows seem selected, and not only those that bounds count."""
    # Where unknown columns say which rows share noise, those counted may be chosen by their
    # released labels: that is no fact about the release.
    every = every_count(context) if selected(context) else None
    channel = aligned_channel(context)
    return selected(context) and (
        every is None or (channel is not None and is_selected(every, channel.matrix))
    )


def standing(context: AuditContext, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of a bound that rests on assumptions, and these, the refuted ones marked."""
    refuted, assumptions = set(), (*assumptions, *context.assumes)
    if uses_features(context):
        refuted.add(FEATURE_BLIND)
    if not counted(context).holds:
        refuted.add(INDEPENDENT)
    if selected(context):
        refuted.add(UNSELECTED)
    marked = tuple(a + REFUTED if a in refuted else a for a in assumptions)
    if not counted(context).known:
        marked = tuple(a + NOT_KNOWN if a == INDEPENDENT else a for a in marked)
    if not rests_on_known(context):
        marked = tuple(a + NOT_KNOWN if a == NOT_DERIVED else a for a in marked)
    return ("certified" if marked == assumptions else "estimated"), marked


def as_it_stands(context: AuditContext, finding: Finding) -> Finding:
    """Return what was found by counting every row of a context: estimates where rows share noise.

    No check may fail by them.
    """
    if counted(context).rows is None and counted(context).holds:
        return finding
    return replace(
        finding,
        estimates=tuple(as_estimate(one) for one in finding.estimates),
        curves=tuple(as_estimate(one) for one in finding.curves),
        bounds=dict.fromkeys(finding.bounds, lambda _: -math.inf),
    )


def as_estimate(one: Any) -> Any:
    """Return a certified number or curve as one whose rows are not independent."""
    if one.kind != "certified":
        return one
    kept = tuple(text for text in one.assumptions if text != INDEPENDENT)
    return one.model_copy(update={"kind": "estimated", "assumptions": (*kept, NOT_INDEPENDENT)})


_GIVE_THEM: Final = (
    "Give them in the order of the release, or join them by a column that both files have (--id)."
)


def check_alignment(context: AuditContext) -> None:
    """Check that the true labels are those of these rows, as far as the claimed channel shows it.

    Raise InputError if they fit only when shifted by some rows, or reveal nothing about the
    released labels although the claim would make it plain.
    """
    release = context.release
    if release.truth is None or release.bags is not None or release.constant:
        return
    channel = aligned_channel(context)
    if channel is None:
        return
    # In an order of reports the labels drawn from them fit those of any row near by.
    if release.reports is not None and ordered_by_reports(context):
        return
    shift = truth_alignment(release.truth, release.released, channel.matrix)
    if shift is None and not numbers_go_together(release.numeric):
        raise InputError(
            "The true labels reveal nothing about the released ones, as if they were in another "
            f"order or of other rows. {_GIVE_THEM} If the order is right, the labels were released "
            "with far more noise than the claim says."
        )
    if shift:
        rows = "one row" if abs(shift) == 1 else f"{abs(shift)} rows"
        raise InputError(
            f"The true labels are shifted by {rows}: they fit the claim for the rows "
            f"{'before' if shift > 0 else 'after'} theirs. {_GIVE_THEM}"
        )
