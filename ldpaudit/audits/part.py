"""Audits of a part of the rows, drawn without a look at any label: of large releases, of groups."""

from dataclasses import replace

from ldpaudit.audits.interface import AuditContext, Views
from ldpaudit.release import IndexArray, Release
from ldpaudit.result import Note
from ldpaudit.work.memory import FIRST_ROWS, RUN, most_rows, rows_looked_at


def in_part(context: AuditContext) -> AuditContext:
    """Return the context of a part of the rows, or the same where all are looked at.

    Rows that were released in bags, and those of a comparison, are never left out.
    """
    release, plan = context.release, context.plan
    whole = release.bags is not None or context.run.guesses is not None
    most = most_rows(release.features.width, len(release.classes))
    rows = None if whole else rows_looked_at(len(release), plan.seed, most)
    if rows is None:
        return context
    return of_rows(context, rows, whole=release)


def of_rows(context: AuditContext, rows: IndexArray, whole: Release | None = None) -> AuditContext:
    """Return the context of some rows."""
    slices = tuple(replace(one, codes=one.codes[rows]) for one in context.plan.slices)
    plan = replace(context.plan, slices=slices)
    companions = None if context.views.companions is None else context.views.companions.take(rows)
    views = Views(whole, companions, context.views.over)
    return replace(context, release=context.release.take(rows), plan=plan, views=views, known={})


def part_note(context: AuditContext) -> tuple[Note, ...]:
    """Return notes on the rows that were looked at, where those are not all."""
    notes: tuple[Note, ...] = ()
    whole = context.views.every_row
    if whole is not None:
        text = (
            f"Audits looked at {len(context.release):,} of the {len(whole):,} rows: the "
            f"first {FIRST_ROWS:,}, and runs of {RUN} that follow each other, drawn blind to all "
            "labels. Unless rows share noise or belong together (--group), labels were counted in "
            "all rows, and neighbours looked for there."
        )
        notes += (Note.info("reading", text),)
    if context.release.groups is not None:
        guesses = ", guesses of numbers" if context.run.guesses is None else ""
        text = (
            f"Losses{guesses} and Rényi divergences were measured on one row of each "
            "group (--group, a repeated --id), drawn at random: rows that belong together count "
            "once."
        )
        notes += (Note.info("reading", text),)
    return notes
