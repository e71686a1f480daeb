"""Everything the page shows, in its order, as plain values for the template."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from ldpaudit.reports.charts.intervals import Cell, Table
from ldpaudit.reports.pages.common import (
    Pair,
    assumptions_of,
    notes_of,
    run_pairs,
    versions_pair,
)
from ldpaudit.reports.parts.part import Part, Tile
from ldpaudit.reports.parts.sections import all_parts
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.harmless import PHRASE, as_identifier, name, shown
from ldpaudit.reports.text.numbers import number, percent, rows
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult, Check, Estimate

MOST_ITEMS: Final = 60
"""Values of a list that the report shows."""
MOST_NUMBERS: Final = 60
"""More estimates than this are in the JSON result only: the page stays under 300 kB."""


@dataclass(frozen=True)
class CheckRow:
    """A check and its answer."""

    check: Check
    question: str
    observed: str
    limit: str
    answer: str
    reason: str
    confidence: str
    p_value: str
    evidence: tuple[Pair, ...]
    """Page id and name of each number that it rests on."""


@dataclass(frozen=True)
class View:
    """The page."""

    result: AuditResult
    release: str
    verdict: str
    publish: str
    sentence: str
    steps: tuple[str, ...]
    date: str
    tiles: tuple[Tile, ...]
    checks: tuple[CheckRow, ...]
    measured: tuple[Pair, ...]
    class_names: tuple[str, ...]
    declared: tuple[Pair, ...]
    derived: tuple[Quantity, ...]
    parts: tuple[Part, ...]
    warnings: tuple[Pair, ...]
    remarks: tuple[Pair, ...]
    assumptions: tuple[Pair, ...]
    audits: tuple[tuple[str, str, str, str], ...]
    command: str
    version: str
    run: tuple[Pair, ...]
    suppressed: tuple[str, ...]
    numbers: tuple[tuple[str, Quantity], ...]

    @property
    def kind(self) -> str:
        """The look of the decision: "pass", "inconclusive" or "fail"."""
        return {"yes": "pass", "no": "fail"}.get(self.publish, "inconclusive")

    @property
    def unlisted(self) -> int:
        """How many estimates only the JSON result holds."""
        return len(self.result.estimates) - len(self.numbers)


def view_of(result: AuditResult) -> View:
    """Return the page of a result."""
    printer = Printer(result)
    parts = all_parts(result, printer)
    pictures = {figure.key for part in parts for figure in part.figures}
    return View(
        result=result,
        release=name(result.release.name),
        verdict=wording.headline(result),
        publish=wording.publish_answer(result),
        sentence=_sentence(result),
        steps=tuple(shown(step) for step in result.next_steps),
        date=result.date or "",
        tiles=tuple(_tiles(result, printer)),
        checks=tuple(_check(result, printer, check, pictures) for check in result.checks),
        measured=tuple(_measured(result)),
        class_names=tuple(name(text) for text in result.release.class_names[:MOST_ITEMS]),
        declared=tuple(_declared(result)),
        derived=_derived(result, printer),
        parts=parts,
        warnings=tuple(dict.fromkeys(notes_of(result.notes, "warning"))),
        remarks=tuple(dict.fromkeys(notes_of(result.notes, "info"))),
        assumptions=assumptions_of([result], most=6),
        audits=tuple(_audits(result)),
        command=shown(result.run.command, 2000),
        version=name(result.ldpaudit_version),
        run=tuple(_run(result)),
        suppressed=tuple(_suppressed(result)),
        numbers=_numbers(result, printer, MOST_NUMBERS),
    )


def with_numbers(view: View, most: int) -> View:
    """Return the page with at most so many numbers in the list at its end.

    All evidence of checks is listed, even beyond.
    """
    return replace(view, numbers=_numbers(view.result, Printer(view.result), most))


def _numbers(result: AuditResult, printer: Printer, most: int) -> tuple[tuple[str, Quantity], ...]:
    listed = _listed(result, most)
    return tuple((f"n-{as_identifier(e.id)}", printer.quantity(e)) for e in listed)


def _listed(result: AuditResult, most: int) -> Iterator[Estimate]:
    """Yield the estimates that the page lists: all, or the most important if there are many.

    Evidence of checks comes first, then the others, then scores; those of single attacks and of
    groups come last: they have tables of their own.
    """
    evidence = {identifier for check in result.checks for identifier in check.evidence}

    def fineness(estimate: Estimate) -> tuple[bool, bool, bool]:
        score = estimate.score
        single = score is not None and (score.subject != "best" or score.group != "")
        return estimate.id not in evidence, score is not None, single

    ranked = sorted(result.estimates, key=fineness)
    listed = {estimate.id for estimate in ranked[: max(most, len(evidence))]}
    yield from (estimate for estimate in result.estimates if estimate.id in listed)


def all_numbers(view: View) -> tuple[Table, tuple[str, ...]]:
    """Return the estimates of the result by their ids, and the methods that they cite.

    Many numbers share a method and its reference, so each is printed once; the last column holds
    its number in the list, from 1.
    """
    headers = ("Id", "Value", "Unit", "n", "Count", "Method")
    methods: dict[str, int] = {}
    rows = tuple(_number_row(quantity, methods) for _, quantity in view.numbers)
    return Table(headers, rows), tuple(methods)


def _number_row(quantity: Quantity, methods: dict[str, int]) -> tuple[Cell, ...]:
    estimate = quantity.estimate
    hidden = "hidden" if estimate.suppressed else "–"
    n = hidden if estimate.n is None else rows(estimate.n)
    count = hidden if estimate.count is None else rows(estimate.count)
    reference = f" ({shown(estimate.reference, 200)})" if estimate.reference else ""
    method = (shown(estimate.method) or "not stated") + reference
    number = methods.setdefault(method, len(methods) + 1)
    return estimate.id, quantity, estimate.unit, n, count, str(number)


def _sentence(result: AuditResult) -> str:
    """Return the verdict's sentence without the words of the banner."""
    text = shown(result.sentence, 3 * PHRASE)
    rest = text.removeprefix(f"{wording.headline(result)}: ")
    return rest[:1].upper() + rest[1:]


def _tiles(result: AuditResult, printer: Printer) -> Iterator[Tile]:
    claim = printer.claim
    unit = {"": "none", "1": " nat", "∞": ""}.get(claim, " nats")
    source, mark = ("as declared", "exact") if claim else ("", "")
    yield Tile("Claimed ε", f"{claim}{unit}", source, mark)
    yield from _measured_epsilon(result, printer)
    loss = result.estimate("instance_loss.mean_lower") or result.estimate("instance_loss.mean")
    if loss is not None:
        yield _tile("Mean loss E[ν]", printer.quantity(loss))
    error = result.estimate("numeric.best.mse")
    if error is not None:
        prior = result.estimate("numeric.prior.mse")
        against = f"other people’s labels: {printer.quantity(prior).text}" if prior else ""
        yield _tile("Best guess’s squared error", printer.quantity(error), against)
    attack = result.estimate("attack.best.accuracy")
    if attack is not None:
        yield _tile("Best attack’s accuracy", printer.quantity(attack), _blind(result, printer))


def _blind(result: AuditResult, printer: Printer) -> str:
    """Return what attackers reach who do not see the released labels."""
    references = (("prior", "majority guess"), ("features-only", "features alone"))
    found = ((words, result.estimate(f"attack.{name}.accuracy")) for name, words in references)
    return ", ".join(f"{words}: {printer.quantity(e).text}" for words, e in found if e)


def _measured_epsilon(result: AuditResult, printer: Printer) -> Iterator[Tile]:
    """Yield the bound behind the verdict, corrected as the policy requires."""
    ids = ("mechanism.epsilon_lower", "release_only.epsilon_lower")
    bound = next(filter(None, map(result.estimate, ids)), None)
    if printer.decisive is not None:
        yield _tile("Measured ε", printer.decisive)
    elif bound is not None:
        yield _tile("Measured ε", printer.quantity(bound))


def _tile(label: str, quantity: Quantity, remark: str = "") -> Tile:
    text = f"{quantity.text} {quantity.unit}".strip()
    return Tile(label, text, quantity.words, quantity.mark, remark)


def _check(
    result: AuditResult, printer: Printer, check: Check, pictures: Collection[str]
) -> CheckRow:
    observed, limit = printer.observed_and_limit(check)
    evidence = tuple(
        (_place(result, i, pictures), shown(result.title(i))) for i in check.evidence[:MOST_ITEMS]
    )
    return CheckRow(
        check,
        shown(check.question),
        observed,
        limit,
        wording.VERDICTS[check.verdict],
        shown(check.reason),
        "" if check.confidence is None else _confidence(check.confidence),
        "" if check.p_value is None else number(check.p_value),
        evidence,
    )


def _place(result: AuditResult, identifier: str, pictures: Collection[str]) -> str:
    """Return the page id of a number or curve; empty if the page has none."""
    if result.estimate(identifier):
        return f"n-{as_identifier(identifier)}"
    key = as_identifier(identifier)
    return f"figure-{key}" if key in pictures else ""


def _confidence(level: float) -> str:
    return percent(level) if 0 < level < 1 else number(level)


def _measured(result: AuditResult) -> Iterator[Pair]:
    release = result.release
    yield "Released file", name(release.name)
    yield "Rows", rows(release.rows)
    yield "Feature columns", rows(release.features)
    yield "Classes", rows(release.classes)
    if release.label is not None:
        yield "Label column", name(release.label)
    truth = "given: an insider’s audit" if release.truth else "not given: an outsider’s audit"
    yield "True labels", truth
    yield "SHA-256 of the file", release.sha256 or "none (a table in memory)"


def _declared(result: AuditResult) -> Iterator[Pair]:
    mechanism = result.mechanism
    yield "Mechanism", name(mechanism.name)
    yield "Declared", wording.SOURCES[mechanism.declared]
    for key, value in list(mechanism.parameters.items())[:MOST_ITEMS]:
        yield name(str(key)), _parameter(value)
    if mechanism.description:
        yield "In words", shown(mechanism.description)


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value, digits=6)
    if isinstance(value, list | tuple):
        return _list(list(value))
    return shown(str(value), 200)


def _list(values: list[Any]) -> str:
    if values and all(isinstance(row, list | tuple) for row in values):
        return f"{len(values)} × {len(values[0])} matrix, in the JSON result"
    if len(values) > 12:
        return f"{len(values)} values, in the JSON result"
    return ", ".join(_parameter(value) for value in values)


def _derived(result: AuditResult, printer: Printer) -> tuple[Quantity, ...]:
    exact = (e for e in result.estimates if e.kind == "exact" and e.section == "mechanism")
    return printer.quantities(exact)


def _audits(result: AuditResult) -> Iterator[tuple[str, str, str, str]]:
    for record in result.audits:
        seconds = f"{number(record.seconds, digits=1)} s"
        title = shown(wording.audit_name(record.id))
        yield title, record.status, shown(record.reason), seconds


def _run(result: AuditResult) -> Iterator[Pair]:
    yield from run_pairs(result.run, "built in")
    yield "Result", f"schema {result.schema_version}, ldpaudit {name(result.ldpaudit_version)}"
    yield versions_pair(result.run)


def _suppressed(result: AuditResult) -> Iterator[str]:
    hidden = sum(estimate.suppressed for estimate in result.estimates)
    numbers = "No number rests" if hidden == 0 else f"{rows(hidden)} of the numbers rest"
    if hidden == 1:
        numbers = "One of the numbers rests"
    consequence = "" if hidden == 0 else "; their counts are hidden and their ends widened"
    yield f"{numbers} on fewer than 10 people, or on all but fewer than 10{consequence}."
    yield "Bins of a histogram with fewer than 10 people are merged with a neighbour."
    if result.release.label is None:
        yield "The names of the label’s column and of the classes are not shown."
    yield "Feature columns are counted, not named."
    yield "No row, cell, row id or score of one person is here."
