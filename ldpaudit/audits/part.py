"""Audits of a part of the rows, drawn without a look at any label: of large releases, of groups."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.randomness import child_generator
from ldpaudit.release import IndexArray
from ldpaudit.result import Note
from ldpaudit.running.memory import RUN, most_rows

_FIRST: Final = 1 << 16
"""The first rows are always among them: seeds are tried there, and rows far apart compared."""


def rows_looked_at(rows: int, seed: int, most: int) -> IndexArray | None:
    """Return the rows of a large release to look at, int64 in order; None where it is all rows."""
    if rows <= most:
        return None
    first = min(_FIRST, most // 2) // RUN
    others = np.arange(first, rows // RUN)
    rng = child_generator(seed, "rows looked at")
    chosen = rng.choice(others, most // RUN - first, replace=False)
    starts = np.concatenate([np.arange(first), np.sort(chosen)]) * RUN
    return np.asarray((starts[:, None] + np.arange(RUN)).reshape(-1))


def in_part(context: AuditContext) -> AuditContext:
    """Return the context of a part of the rows, or the same where all are looked at.

    Rows that were released in bags, and those of a comparison, are never left out.
    """
    release, plan = context.release, context.plan
    whole = release.bags is not None or context.guesses is not None
    most = most_rows(release.features.width, len(release.classes))
    rows = None if whole else rows_looked_at(len(release), plan.seed, most)
    if rows is None:
        return context
    return replace(of_rows(context, rows), whole=release)


def over_all_rows(context: AuditContext) -> AuditContext:
    """Return the context of all rows, for counts that can be made of them.

    What is known of columns, and that rows share no noise, comes from the part that was looked at.
    Where rows of the part share noise, belong together or were changed after the noise, it is the
    context of the part.
    """
    from ldpaudit.audits.assumptions.columns import column_evidence
    from ldpaudit.audits.assumptions.rows import Clusters, Counted, clusters, counted

    if context.whole is None or clusters(context) is not None:
        return context
    part = counted(context)
    if part.rows is not None or not part.holds or len(column_evidence(context).fixed):
        return context
    shared: dict[str, Any] = context.once("all rows", dict)
    shared["assumptions.clusters"] = Clusters({}, (), None)
    shared["assumptions.counted"] = Counted(None)
    shared["assumptions.columns"] = column_evidence(context)
    return replace(context, release=context.whole, whole=None, _shared=shared)


def one_row_of_each_group(context: AuditContext) -> AuditContext:
    """Return the context of one random row of each stated group, or the same without groups.

    What is known of columns and of shared noise comes from all rows.
    """
    from ldpaudit.audits.assumptions.columns import column_evidence
    from ldpaudit.audits.assumptions.rows import Counted, counted, noise_clusters

    groups = context.release.groups
    if groups is None:
        return context
    shared: dict[str, Any] = context.once("one row of each group", dict)
    if not shared:
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
        shared["rows"] = rows
        shared["assumptions.clusters"] = replace(found, kinds={}, codes=codes)
        shared["assumptions.counted"] = Counted(apart, of_all.lags, of_all.holds)
        shared["assumptions.columns"] = replace(
            column_evidence(context), fixed=np.empty(0, dtype=np.int64)
        )
    return replace(of_rows(context, shared["rows"]), whole=None, _shared=shared)


def of_rows(context: AuditContext, rows: IndexArray) -> AuditContext:
    """Return the context of some rows."""
    slices = tuple(replace(one, codes=one.codes[rows]) for one in context.plan.slices)
    plan = replace(context.plan, slices=slices)
    companions = None if context.companions is None else context.companions.take(rows)
    return replace(context, release=context.release.take(rows), plan=plan, companions=companions)


def part_note(context: AuditContext) -> tuple[Note, ...]:
    """Return notes on the rows that were looked at, where those are not all."""
    notes: tuple[Note, ...] = ()
    if context.whole is not None:
        text = (
            f"Audits looked at {len(context.release):,} of the {len(context.whole):,} rows: the "
            f"first {_FIRST:,}, and runs of {RUN} that follow each other, drawn blind to all "
            "labels. Unless rows share noise or belong together (--group), labels were counted in "
            "all rows, and neighbours looked for there."
        )
        notes += (Note.info("reading", text),)
    if context.release.groups is not None:
        guesses = ", guesses of numbers" if context.guesses is None else ""
        text = (
            f"Losses{guesses} and Rényi divergences were measured on one row of each "
            "group (--group, a repeated --id), drawn at random: rows that belong together count "
            "once."
        )
        notes += (Note.info("reading", text),)
    return notes
