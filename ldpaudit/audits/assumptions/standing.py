"""What bounds may use: columns from before, unchanged rows, assumptions that still stand."""

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ldpaudit.audits.assumptions.changed import known_changes, unchanged_rows, without_changed
from ldpaudit.audits.assumptions.doubts import doubt
from ldpaudit.audits.assumptions.noise import SUSPICIOUS
from ldpaudit.audits.assumptions.rows import (
    Counted,
    clusters,
    counted,
    dependence_of,
    noise_clusters,
    noise_of,
    tested,
)
from ldpaudit.audits.assumptions.views import ordered_by_reports
from ldpaudit.audits.before import before, kept_features, unknown
from ldpaudit.audits.interface import AuditContext, Memo, remembered
from ldpaudit.audits.models import aligned_channel
from ldpaudit.errors import InputError
from ldpaudit.estimators.assumptions.afterwards import (
    is_selected,
    numbers_go_together,
    times_selected,
    truth_alignment,
)
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.release import BoolArray, FeatureTable, IndexArray, label_table
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
    left = without_changed(context)
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


def over_all_rows(context: AuditContext) -> AuditContext:
    """Return the context of all rows, for counts that can be made of them."""
    # What is known of columns, and that rows share no noise, comes from the part that was looked
    # at. Where rows of the part share noise, belong together or were changed after the noise, it is
    # the context of the part.
    if context.whole is None or clusters(context) is not None:
        return context
    part = counted(context)
    if part.rows is not None or not part.holds or len(known_changes(context)):
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
