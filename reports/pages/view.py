"""Everything the page of an audit shows, in its order, as plain values for the template."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ldpaudit.reports.pages.checks import CheckRow, check_rows
from ldpaudit.reports.pages.common import (
    Pair,
    assumptions_of,
    notes_of,
    plugin_pairs,
    run_pairs,
    versions_pair,
)
from ldpaudit.reports.pages.front import Front, front_of
from ldpaudit.reports.pages.numbers import Numbers, numbers_of
from ldpaudit.reports.pages.subject import (
    MOST_ITEMS,
    declared,
    derived,
    digest,
    measured,
    parameters,
)
from ldpaudit.reports.parts.part import Part, Section
from ldpaudit.reports.parts.sections import all_parts
from ldpaudit.reports.summary.attackers import Attacks, attackers_told
from ldpaudit.reports.summary.claim import claim_told
from ldpaudit.reports.summary.losses import losses_told
from ldpaudit.reports.summary.power import power_told
from ldpaudit.reports.summary.together import together_told
from ldpaudit.reports.summary.told import Told
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.harmless import name, shown
from ldpaudit.reports.text.numbers import number
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult

MOST_WARNINGS: Final = 5
"""Warnings that are read without unfolding anything."""
DERIVED: Final = 3
"""Numbers of the declaration that are read without unfolding anything."""


@dataclass(frozen=True)
class View:
    """The page."""

    result: AuditResult
    front: Front
    checks: tuple[CheckRow, ...]
    corrections: tuple[str, ...]
    warnings: tuple[Pair, ...]
    measured: tuple[Pair, ...]
    digest: str
    declared: tuple[Pair, ...]
    derived: tuple[Quantity, ...]
    told: tuple[Told, ...]
    rests_on: tuple[str, ...]
    parts: tuple[Part, ...]
    class_names: tuple[str, ...]
    parameters: tuple[Pair, ...]
    remarks: tuple[Pair, ...]
    assumptions: tuple[Pair, ...]
    audits: tuple[tuple[str, str, str, str], ...]
    command: str
    version: str
    run: tuple[Pair, ...]
    numbers: Numbers

    @property
    def unlisted(self) -> int:
        """How many estimates only the JSON result holds."""
        return len(self.result.estimates) - len(self.numbers)


def view_of(result: AuditResult) -> View:
    """Return the page of a result."""
    printer = Printer(result)
    parts, told = all_parts(result, printer), _told(result, printer)
    pictures = {figure.key for each in told for figure in each.figures}
    pictures |= {figure.key for part in parts for figure in part.figures}
    return View(
        result=result,
        front=front_of(result, printer),
        checks=check_rows(result, printer, pictures),
        corrections=wording.correction_lines(result),
        warnings=tuple(dict.fromkeys(notes_of(result.notes, "warning"))),
        measured=tuple(measured(result)),
        digest=digest(result),
        declared=tuple(declared(result)),
        derived=derived(result, printer),
        told=told,
        rests_on=wording.assumed_by_bounds(result),
        parts=parts,
        class_names=tuple(name(text) for text in result.release.class_names[:MOST_ITEMS]),
        parameters=parameters(result),
        remarks=tuple(dict.fromkeys(notes_of(result.notes, "info"))),
        assumptions=assumptions_of([result], most=6),
        audits=tuple(_audits(result)),
        command=shown(result.run.command, 2000),
        version=name(result.ldpaudit_version),
        run=tuple(_run(result)),
        numbers=numbers_of(result, printer),
    )


def with_numbers(view: View, most: int) -> View:
    """Return the page with at most so many numbers in the list at its end, and all evidence."""
    return replace(view, numbers=numbers_of(view.result, Printer(view.result), most))


def _told(result: AuditResult, printer: Printer) -> tuple[Told, ...]:
    """Return the short sections in their order."""

    def section(audit: str) -> Section:
        return Section(audit, result, printer)

    attacked = ("label-inference", "aggregates", "numeric-inference")
    attacks = Attacks(*map(section, attacked))
    several = result.labels or result.releases
    told = (
        *((together_told(section("person")),) if several else ()),
        claim_told(section("mechanism")),
        attackers_told(attacks),
        losses_told(section("instance-loss")),
        power_told(section("power")),
    )
    # What a whole has no numbers of, its columns and releases have.
    return tuple(each for each in told if not (each.missing and result.parts))


def _audits(result: AuditResult) -> Iterator[tuple[str, str, str, str]]:
    for record in result.audits:
        seconds = f"{number(record.seconds, digits=1)} s"
        title = shown(wording.audit_name(record.id))
        yield title, record.status, shown(record.reason), seconds


def _run(result: AuditResult) -> Iterator[Pair]:
    yield from run_pairs(result.run, "built in")
    yield "Result", f"schema {result.schema_version}, ldpaudit {name(result.ldpaudit_version)}"
    yield versions_pair(result.run)
    yield from plugin_pairs(wording.plugins_of(result))
