"""Rows whose released labels a rule fixed after the noise, and the rows that are left."""

from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.noise import WhiteNoise
from ldpaudit.audits.assumptions.places import groups
from ldpaudit.audits.assumptions.rows import counted_rows, noise_of, shared, tested
from ldpaudit.audits.before import before
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import aligned_channel, cross_fitted_posterior
from ldpaudit.estimators.assumptions.afterwards import fixed_by_model, fixed_rows
from ldpaudit.estimators.departures import Groups
from ldpaudit.release import IndexArray


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
    fixed = known_changes(context)
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
def without_changed(context: AuditContext) -> WhiteNoise | None:
    """Return where noise is not white in the rows that no rule changed; None where none did."""
    fixed = np.union1d(changed_rows(context), foreseen_labels(context))
    if not len(fixed) or 2 * len(fixed) > len(context.release):
        return None
    left = np.setdiff1d(np.arange(len(context.release)), fixed, assume_unique=True)
    return noise_of(context.on_rows(left))


def known_changes(context: AuditContext) -> IndexArray:
    """Return :func:`changed_rows` where noise can be tested, and no row elsewhere."""
    if context.release.truth is None or not tested(context):
        return np.empty(0, dtype=np.int64)
    return changed_rows(context)


def unchanged_rows(context: AuditContext) -> IndexArray | None:
    """Return the rows whose labels a bound may count, int64, in order; None for all of them."""
    rows, fixed = counted_rows(context), known_changes(context)
    if not len(fixed):
        return rows
    every = np.arange(len(context.release)) if rows is None else rows
    return np.setdiff1d(every, fixed, assume_unique=True)
