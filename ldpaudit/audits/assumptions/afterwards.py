"""Released labels that were changed after the noise: which rows bounds count, and what holds."""

from collections.abc import Iterator

import numpy as np

from ldpaudit.audits.assumptions.columns import column_evidence, uses_features
from ldpaudit.audits.assumptions.rows import counted, counted_rows
from ldpaudit.audits.assumptions.stated import CHANGED_ROWS, INDEPENDENT, SELECTED
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.part import over_all_rows
from ldpaudit.estimators.assumptions.afterwards import is_selected
from ldpaudit.release import IndexArray, label_table
from ldpaudit.result import Estimate


def unchanged_rows(context: AuditContext) -> IndexArray | None:
    """Return the rows whose labels a bound may count, int64, in order; None for all of them."""
    rows, fixed = counted_rows(context), column_evidence(context).fixed
    if not len(fixed):
        return rows
    every = np.arange(len(context.release)) if rows is None else rows
    return np.setdiff1d(every, fixed, assume_unique=True)


def label_counts(context: AuditContext) -> IndexArray:
    """Return how many rows have each true label and output, int64 of shape (k, m).

    All rows of a large release count, too. Where rows share noise, one row of each group counts,
    and none whose label was changed after the noise.
    """
    every = over_all_rows(context)
    release, rows = every.release, unchanged_rows(every)
    k, m = len(release.classes), len(release.outputs)
    used = slice(None) if rows is None else rows
    return label_table(every.truth[used], release.released[used], k, m)


def selected(context: AuditContext) -> bool:
    """Return whether rows were left out or repeated because of their released label."""
    return context.once("assumptions.selected", lambda: _selected(context))


def _selected(context: AuditContext) -> bool:
    channel = None if context.release.truth is None else aligned_channel(context)
    if channel is None or uses_features(context) or not counted(context).holds:
        return False
    return is_selected(label_counts(context), channel.matrix)


def changes(context: AuditContext) -> Iterator[Estimate]:
    """Yield what was found of labels that were changed after the noise."""
    fixed = len(column_evidence(context).fixed)
    if fixed:
        yield Estimate.estimated(
            CHANGED_ROWS,
            "Rows whose released label their features fix, whatever the true one is",
            fixed,
            unit="rows",
            count=fixed,
            n=len(context.release),
            method="all rows with a value of a column, or in a leaf of a tree, have one released "
            "label, also those with the true label that makes it least likely; without these rows "
            "the features say nothing of the released label beyond the true one",
            assumptions=("such labels were overwritten after the noise",),
        )
    if selected(context):
        yield Estimate.estimated(
            SELECTED,
            "Whether rows were left out or repeated because of their released label (1: yes)",
            1,
            method="the counts fit the claimed channel with each column scaled by one factor (G "
            "test), and not the channel itself",
            assumptions=(INDEPENDENT,),
            reference="Deming & Stephan (1940); Wilks (1938)",
        )
