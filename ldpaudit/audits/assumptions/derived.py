"""Columns computed from the released label: asked of some rows, split into given halves."""

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ldpaudit.arrays import HalfArray
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import aligned_channel
from ldpaudit.estimators.assumptions.afterwards import (
    Signals,
    bin_frequencies,
    computed_columns,
    fixed_rows,
    looked_at,
)
from ldpaudit.estimators.assumptions.columns import (
    SURE,
    SUSPICIOUS,
    Dependence,
    Halves,
    LabelledRows,
    dependence,
    label_sides,
    sampled,
)
from ldpaudit.estimators.assumptions.columns import derived_columns as find_derived
from ldpaudit.estimators.epsilon.release_only import (
    release_only_evidence,
)
from ldpaudit.release import FeatureTable, IndexArray

# Nats: a column that tells more than this of the released label alone is no natural feature.
DETERMINED: Final = 4.0
_FEWEST: Final = 200
# A place says something of the true label by itself, or by where noise changed it.
_EITHER_WAY: Final = (0, 2)
# Standard errors within which an order may still follow the released labels.
_PERHAPS: Final = 2.5
_MOST_COLUMNS: Final = 64


@dataclass(frozen=True)
class ColumnEvidence:
    """What was found out about the feature columns."""

    # ``derived``: the array columns computed from the released label, or so it seems. ``p_value``:
    # with true labels: valid, of "given the true label, the other columns say nothing of the
    # released one". ``doubtful``: with true labels: whether the mechanism may have used some of the
    # derived columns instead. ``ordered``: with true labels: whether the order of the rows was made
    # from released labels, too. ``rows_in_doubt``: with true labels: whether rows that are alike
    # may share noise, which would explain what features seem to say. ``fixed``: with true labels:
    # the rows whose released label their features fix, whatever the true one is, where that
    # explains what features say of the released label. ``bound_with``: without true labels: the
    # bound of ε, in nats, that the derived columns would give.

    derived: tuple[int, ...] = ()
    p_value: float | None = None
    doubtful: bool = False
    ordered: bool = False
    rows_in_doubt: bool = False
    fixed: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    bound_with: float | None = None


@dataclass(frozen=True)
class EpsilonRange:
    """The bound of ε at the audit's confidence, and at one half; in nats."""

    certified: float
    likely: float


def with_number(features: FeatureTable, rows: IndexArray) -> FeatureTable:
    """Return features of some rows, with the number of the row as the last numeric column."""
    numbers = rows.astype(np.float32)[:, None]
    return replace(features, numeric=np.concatenate([features.numeric, numbers], axis=1))


def first_look(context: AuditContext, together: IndexArray) -> ColumnEvidence:
    """Return what is derived from released labels before it is known which rows share noise."""
    # ``together``: int64 of shape (n,), codes of rows that may; they are on one side of every
    # split.
    rng = context.rng("assumptions", "first look")
    halves = (rng.random(int(together.max()) + 1) < 0.5)[together].astype(np.int8)
    rows = np.arange(len(halves))
    if context.release.truth is not None:
        return evidence_with_truth(context, rows, halves)
    limit, alone = largest_expected(context), bounds_alone(context, rows, halves)
    suspects = suspects_among(alone, limit)
    if not suspects:
        return ColumnEvidence()
    signals, most = signals_of(context, rows, halves), max(DETERMINED, limit)
    found = (j for j in suspects if alone[j].certified > most or not signals.levels_off(j))
    return ColumnEvidence(tuple(found) if len(suspects) < context.release.features.width else ())


def _split(context: AuditContext, rows: IndexArray, halves: HalfArray) -> tuple[IndexArray, Halves]:
    rng, width = context.rng("assumptions", "halves"), context.release.features.width
    learn, test = (sampled(rows[halves[rows] == half], width, rng) for half in (0, 1))
    places = np.arange(len(learn) + len(test))
    return np.concatenate([learn, test]), Halves(places[: len(learn)], places[len(learn) :])


def evidence_with_truth(
    context: AuditContext, every: IndexArray, sides: HalfArray
) -> ColumnEvidence:
    """Return what true labels show of columns, on some rows split into two sides."""
    release = context.release
    used, halves = _split(context, every, sides)
    if min(len(halves.learn), len(halves.test)) < _FEWEST:
        return ColumnEvidence()
    truth, released = context.truth[used], release.released[used]
    same = release.outputs == release.classes
    rows = LabelledRows(
        release.features.take(used),
        truth,
        released,
        label_sides(truth, released, same_labels=same),
        halves,
        int(context.rng("assumptions", "models").integers(2**31)),
    )
    found = _by_columns(context, rows, every, used)
    place = _by_place(replace(rows, halves=_other_rows(rows.halves, used, found.fixed)), used)
    p_value = _either(1.0 if found.p_value is None else found.p_value, place.p_value)
    doubtful = found.doubtful or place.doubtful
    return replace(found, p_value=p_value, doubtful=doubtful, ordered=place.ordered)


def _by_columns(
    context: AuditContext, rows: LabelledRows, every: IndexArray, used: IndexArray
) -> ColumnEvidence:
    """Return whether the released label depends on columns, and what else explains it."""
    release, first = context.release, dependence(rows)
    computed: tuple[int, ...] = ()
    if first.p_value <= SUSPICIOUS:
        computed = computed_columns(
            release.features, context.truth, release.released, first.suspects()
        )
    overwritten = _with_rules(context, rows, ColumnEvidence(computed, first.p_value), every, used)
    if overwritten is not None or first.p_value > SUSPICIOUS:
        return overwritten or ColumnEvidence(computed, first.p_value)
    found = _with_derived(rows, first, computed)
    return _with_rules(context, rows, found, every, used) or found


def _with_derived(
    rows: LabelledRows, first: Dependence, computed: tuple[int, ...]
) -> ColumnEvidence:
    """Return the columns computed from released labels, and what the others then say."""
    suspects = [j for j in first.suspects() if j not in computed]
    likely = find_derived(rows, suspects) if suspects else ()
    derived = (*computed, *likely)
    if not derived:
        return ColumnEvidence((), first.p_value)
    doubtful = bool(likely) and set(find_derived(rows, list(likely), errors=SURE)) != set(likely)
    return ColumnEvidence(derived, max(first.p_value, dependence(rows, derived).p_value), doubtful)


def _with_rules(
    context: AuditContext,
    rows: LabelledRows,
    found: ColumnEvidence,
    every: IndexArray,
    used: IndexArray,
) -> ColumnEvidence | None:
    """Return the evidence without rows whose labels a rule overwrote; None if it explains less."""
    release = context.release
    table = release.features.without(found.derived).take(every)
    fixed = every[fixed_rows(table, context.truth[every], release.released[every], rows.seed)]
    left = _other_rows(rows.halves, used, fixed)
    # Columns that fix most labels are copies of the released label, no rule.
    if not len(fixed) or 2 * len(fixed) > len(every):
        return None
    if min(len(left.learn), len(left.test)) < _FEWEST:
        return None
    p_value = dependence(replace(rows, halves=left), found.derived).p_value
    if p_value <= SUSPICIOUS:
        return None
    return replace(found, p_value=max(found.p_value or 0.0, p_value), fixed=fixed)


def _other_rows(halves: Halves, used: IndexArray, fixed: IndexArray) -> Halves:
    return Halves(*(half[~np.isin(used[half], fixed)] for half in (halves.learn, halves.test)))


def _either(one: float, other: float | None) -> float:
    return min(1.0, 2 * min(one, 1.0 if other is None else other))


def _by_place(rows: LabelledRows, used: IndexArray) -> ColumnEvidence:
    """Return whether the released label depends on its row's place, and if the order follows it."""
    nothing = rows.features.without(range(rows.features.width))
    alone = dependence(replace(rows, features=with_number(nothing, used)))
    if alone.p_value > SUSPICIOUS:
        return ColumnEvidence((), alone.p_value)
    every = replace(rows, features=with_number(rows.features, used))
    number = [rows.features.numeric.shape[1]]
    if not find_derived(every, number, errors=-_PERHAPS, targets=_EITHER_WAY):
        return ColumnEvidence((), alone.p_value)
    sure = find_derived(every, number, errors=SURE, targets=_EITHER_WAY)
    return ColumnEvidence((), 1.0, doubtful=not sure, ordered=True)


def largest_expected(context: AuditContext) -> float:
    """Return the claimed ε; where nothing is claimed, what no natural feature tells."""
    channel = aligned_channel(context)
    limit = context.claim.epsilon
    if limit is None and channel is not None:
        limit = channel.epsilon
    return DETERMINED if limit is None or math.isinf(limit) else limit


def bounds_alone(
    context: AuditContext, rows: IndexArray, halves: HalfArray
) -> dict[int, EpsilonRange]:
    """Return the bounds of ε that each array column gives alone."""
    release, alpha = context.release, 1 - context.plan.confidence
    rng, m = context.rng("assumptions", "alone"), len(release.outputs)
    bounds: dict[int, EpsilonRange] = {}
    if np.bincount(halves[rows], minlength=2).min() < _FEWEST:
        return bounds
    for j in looked_at(release.features, release.released, _MOST_COLUMNS).tolist():
        scores = bin_frequencies(release.features, j, release.released, m, halves)
        evidence = release_only_evidence(
            None, release.released[rows], m, halves[rows], rng=rng, scores=scores[rows]
        )
        bounds[j] = EpsilonRange(evidence.bound(alpha).epsilon, evidence.bound(0.5).epsilon)
    return bounds


def suspects_among(alone: dict[int, EpsilonRange], limit: float) -> list[int]:
    """Return the columns that alone seem to show more than a limit, the clearest first."""
    found = [j for j in alone if alone[j].likely > limit]
    return sorted(found, key=lambda j: -alone[j].likely)


def signals_of(context: AuditContext, rows: IndexArray, halves: HalfArray) -> Signals:
    """Return what columns say of the released label, learnt on the other half."""
    used, places = _split(context, rows, halves)
    released = context.release.released[used]
    return Signals.of(
        context.release.features.take(used),
        released,
        label_sides(released, released, same_labels=True)[1],
        places,
        int(context.rng("assumptions", "models").integers(2**31)),
    )


def seems_natural(signals: Signals, column: int) -> bool:
    """Return whether a column seems to go with the released label through the true one."""
    return signals.levels_off(column) or signals.explained(column) > 0
