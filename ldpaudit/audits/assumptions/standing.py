"""What bounds may use: sound columns, unchanged rows, and the assumptions that still stand."""

# With the bound of ε from the release alone, for any choice of feature columns: without true labels
# it shows which columns were computed from the released label.

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ldpaudit.audits.assumptions.derived import (
    DETERMINED,
    ColumnEvidence,
    EpsilonRange,
    bounds_alone,
    evidence_with_truth,
    largest_expected,
    seems_natural,
    signals_of,
    suspects_among,
    with_number,
)
from ldpaudit.audits.assumptions.rows import (
    EQUAL,
    Clusters,
    Counted,
    clusters,
    counted,
    counted_rows,
    may_share,
    noise_clusters,
    tested,
)
from ldpaudit.audits.interface import AuditContext, of_rows, remembered
from ldpaudit.audits.models import aligned_channel, cross_fitted_posterior
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.assumptions.afterwards import (
    Signals,
    computed_columns,
    is_selected,
    truth_alignment,
)
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.estimators.assumptions.columns import SUSPICIOUS
from ldpaudit.estimators.epsilon.release_only import (
    ReleaseOnlyEvidence,
    release_only_evidence,
)
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, label_table
from ldpaudit.result import Finding, Kind
from ldpaudit.result.stated import (
    FEATURE_BLIND,
    INDEPENDENT,
    NOT_INDEPENDENT,
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
        release.released[rows],
        len(release.outputs),
        context.halves()[rows],
        rng=rng,
        point_rows=chosen,
        scores=None if scores is None else scores[rows],
        ordered=release.numeric is not None,
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


# The share of a column that the others explain.
_MOSTLY: Final = 0.5
# Shares of the claim; the second where the first leaves a violation.
_SUSPICIOUS_SHARES: Final = (1.0, 0.5)


@remembered("assumptions.features")
def sound_features(context: AuditContext) -> FeatureTable:
    """Return the features without columns that were computed from the released label."""
    return context.release.features.without(derived_columns(context))


def sound_and_numbered(context: AuditContext, rows: IndexArray) -> FeatureTable:
    """Return sound features of some rows, and their numbers unless released labels order them."""
    features = sound_features(context)
    ordered = column_evidence(context).ordered
    taken = features.take(rows)
    return taken if ordered else with_number(taken, rows)


def derived_columns(context: AuditContext) -> tuple[int, ...]:
    """Return the array columns computed from the released label, numeric ones first."""
    return column_evidence(context).derived


def uses_features(context: AuditContext) -> bool:
    """Return whether the released labels depend on features, at the plan's confidence."""
    p_value = column_evidence(context).p_value
    return p_value is not None and p_value <= 1 - context.plan.confidence


@remembered("assumptions.columns")
def column_evidence(context: AuditContext) -> ColumnEvidence:
    """Return what was found out about the feature columns."""
    if not tested(context) or context.release.features.is_constant():
        return ColumnEvidence()
    if context.release.truth is None:
        return _without_truth(context)
    found = evidence_with_truth(context, _every(context), context.halves())
    # Rows of one person on both sides of the split show what features seem to say.
    if not counted(context).holds:
        return replace(found, p_value=None)
    suspicious = found.p_value is not None and found.p_value <= SUSPICIOUS
    if suspicious and (may_share(context) or _repeated(context)):
        return replace(found, p_value=None, rows_in_doubt=True)
    return found


def _repeated(context: AuditContext) -> bool:
    """Return whether rows seem to have been repeated because of their released label."""
    # One row of each group of equal ones counts, so a label is as frequent as its rows were
    # repeated only where such groups have many people: that looks like a channel that uses the
    # features.
    channel, release = aligned_channel(context), context.release
    if channel is None or EQUAL not in noise_clusters(context).shared:
        return False
    k, m = len(release.classes), len(release.outputs)
    return is_selected(label_table(context.truth, release.released, k, m), channel.matrix)


def _every(context: AuditContext) -> IndexArray:
    rows = counted_rows(context)
    return np.arange(len(context.release)) if rows is None else rows


def _without_truth(context: AuditContext) -> ColumnEvidence:
    limit = largest_expected(context)
    bound = _bound_without(context, ())
    if bound <= limit:
        return ColumnEvidence()
    rows, halves = _every(context), context.halves()
    alone = bounds_alone(context, rows, halves)
    release = context.release
    derived = list(computed_columns(release.features, None, release.released, alone))
    if derived and _bound_without(context, tuple(derived)) <= limit:
        return ColumnEvidence(tuple(derived), bound_with=bound)
    signals: Signals | None = None
    for least in _SUSPICIOUS_SHARES:
        suspects = [j for j in suspects_among(alone, least * limit) if j not in derived]
        if suspects and signals is None:
            signals = signals_of(context, rows, halves)
        found = [j for j in suspects if signals and not _is_natural(context, signals, alone, j)]
        derived += found
        if found and _bound_without(context, tuple(derived)) <= limit:
            break
    return ColumnEvidence(tuple(derived), bound_with=bound) if derived else ColumnEvidence()


def _is_natural(
    context: AuditContext, signals: Signals, alone: dict[int, EpsilonRange], column: int
) -> bool:
    limit = largest_expected(context)
    if alone[column].certified > max(DETERMINED, limit) or not seems_natural(signals, column):
        return False
    # A score that a model gave its own training rows, or a mean over rows near by, is in part a
    # function of the others, and without it nothing speaks against the claim.
    scored = not signals.levels_off(column)
    if alone[column].certified <= limit:
        scored = scored and signals.explained(column) > _MOSTLY
    return not scored or _bound_without(context, (column,)) > limit


def _bound_without(context: AuditContext, columns: tuple[int, ...]) -> float:
    """Return the bound of ε from the release alone without some columns, in nats; 0 for none."""
    evidence = evidence_of(context, context.release.features.without(columns))
    if isinstance(evidence, str):
        return 0.0
    return evidence.bound(1 - context.plan.confidence).epsilon


def over_all_rows(context: AuditContext) -> AuditContext:
    """Return the context of all rows, for counts that can be made of them."""
    # What is known of columns, and that rows share no noise, comes from the part that was looked
    # at. Where rows of the part share noise, belong together or were changed after the noise, it is
    # the context of the part.
    whole = context.views.every_row
    if whole is None or clusters(context) is not None:
        return context
    part = counted(context)
    if part.rows is not None or not part.holds or len(column_evidence(context).fixed):
        return context
    known: dict[str, Any] = context.once("all rows", dict)
    known["assumptions.clusters"] = Clusters({}, (), None)
    known["assumptions.counted"] = Counted(None)
    known["assumptions.columns"] = column_evidence(context)
    return context.of(whole, views=replace(context.views, every_row=None), known=known)


def one_row_of_each_group(context: AuditContext) -> AuditContext:
    """Return the context of one random row of each stated group, or the same without groups."""
    # What is known of columns and of shared noise comes from all rows.
    groups = context.release.groups
    if groups is None:
        return context
    known: dict[str, Any] = context.once("one row of each group", dict)
    if not known:
        rows = one_of_each(groups, context.rng("one row of each group"))
        found = noise_clusters(context)
        codes = None if found.codes is None else found.codes[rows]
        if codes is not None and len(np.unique(codes)) == len(codes):
            codes = None
        of_all = counted(context)
        places = np.arange(len(rows))
        if codes is not None:
            places = one_of_each(codes, context.rng("counted of groups"))
        if of_all.lags is not None:  # Distances are those in the file.
            places = np.searchsorted(rows, of_all.lags.apart(rows[places]))
        apart = None if len(places) == len(rows) else places
        known["rows"] = rows
        known["assumptions.clusters"] = replace(found, kinds={}, codes=codes)
        known["assumptions.counted"] = Counted(apart, of_all.lags, of_all.holds)
        known["assumptions.columns"] = replace(
            column_evidence(context), fixed=np.empty(0, dtype=np.int64)
        )
    return replace(of_rows(context, known["rows"]), known=known)


def unchanged_rows(context: AuditContext) -> IndexArray | None:
    """Return the rows whose labels a bound may count, int64, in order; None for all of them."""
    rows, fixed = counted_rows(context), column_evidence(context).fixed
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


@remembered("assumptions.selected")
def selected(context: AuditContext) -> bool:
    """Return whether rows were left out or repeated because of their released label."""
    channel = None if context.release.truth is None else aligned_channel(context)
    if channel is None or uses_features(context) or not counted(context).holds:
        return False
    return is_selected(label_counts(context), channel.matrix)


def standing(context: AuditContext, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of a bound that rests on assumptions, and these, the refuted ones marked."""
    refuted, assumptions = set(), (*assumptions, *context.views.assumes)
    if uses_features(context):
        refuted.add(FEATURE_BLIND)
    if not counted(context).holds:
        refuted.add(INDEPENDENT)
    if selected(context):
        refuted.add(UNSELECTED)
    marked = tuple(a + REFUTED if a in refuted else a for a in assumptions)
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
    shift = truth_alignment(release.truth, release.released, channel.matrix)
    if shift is None:
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
