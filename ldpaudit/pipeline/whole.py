"""The result of a whole of several parts: its own audits, its verdict, the parts within it."""

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import ldpaudit
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.running import prepared, run_one
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.waivers import WAIVER
from ldpaudit.judging.whole import About, judge_whole
from ldpaudit.result import AuditRecord, AuditResult, Finding, Note, together


def own_findings(
    context: AuditContext, chosen: Mapping[str, str], own: Collection[str]
) -> tuple[tuple[AuditRecord, ...], Finding]:
    """Return what the audits of the whole found, ``own`` of those chosen, and whether they ran."""
    jobs = prepared({name: place for name, place in chosen.items() if name in own}, context)
    outcomes = [run_one(job, context) for job in jobs]
    context.progress.phases((), ())
    return tuple(record for record, _ in outcomes), together(finding for _, finding in outcomes)


def whole_result(
    about: About,
    finding: Finding,
    parts: tuple[AuditResult, ...],
    within: Literal["labels", "releases"],
    *,
    sha256: str | None,
    today: datetime.date,
    notes: tuple[Note, ...],
    **info: Any,
) -> AuditResult:
    """Judge a whole, and put its result together.

    ``within`` is the field that holds the parts, ``notes`` are the reader's warnings, ``info`` the
    fields ``release``, ``mechanism`` and ``run``; the others are as :func:`judge_whole` takes them.
    """
    evidence = Evidence.collect([finding])
    judgement = judge_whole(about, evidence, parts, sha256=sha256, today=today)
    unused, parts = _unused_waivers(parts, judgement.notes)
    return AuditResult(
        ldpaudit_version=ldpaudit.__version__,
        verdict=judgement.verdict,
        sentence=judgement.sentence,
        next_steps=judgement.next_steps,
        date=today.isoformat(),
        estimates=finding.estimates,
        curves=finding.curves,
        histograms=finding.histograms,
        notes=(*notes, *finding.notes, *unused),
        checks=judgement.checks,
        families=judgement.families,
        audits=about.records,
        **info,
        **{within: parts},
    )


def _unused_waivers(
    parts: tuple[AuditResult, ...], own: Sequence[Note]
) -> tuple[tuple[Note, ...], tuple[AuditResult, ...]]:
    """Return the notes on the whole's judging, and the parts without theirs on unused waivers.

    A waiver that one column or the whole used is used.
    """
    told = [[n for n in part.notes if _of_waiver(n)] for part in parts]
    unused = [n for n in own if _of_waiver(n)]
    kept = [n for n in unused if all(_waiver(n) in map(_waiver, notes) for notes in told)]
    bare = tuple(
        part.model_copy(update={"notes": tuple(n for n in part.notes if not _of_waiver(n))})
        for part in parts
    )
    return tuple(n for n in own if not _of_waiver(n) or n in kept), bare


def _of_waiver(note: Note) -> bool:
    return note.audit == "policy" and note.text.startswith(WAIVER)


def _waiver(note: Note) -> str:
    return note.text.removeprefix(WAIVER).partition(" ")[0]
