"""What was audited: measured in the release, declared by it, and derived from the declaration."""

from collections.abc import Iterator
from typing import Any, Final

from ldpaudit.reports.pages.common import Pair
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.harmless import name, shown
from ldpaudit.reports.text.numbers import number, rows
from ldpaudit.reports.text.quantities import Printer, Quantity, is_epsilon
from ldpaudit.result import AuditResult, Estimate

MOST_ITEMS: Final = 60
"""Values of a list that the report shows."""


def measured(result: AuditResult) -> Iterator[Pair]:
    """Yield what was read from the release."""
    release = result.release
    yield "Rows", rows(release.rows)
    yield "Feature columns", rows(release.features)
    yield held(result)
    if release.label is not None:
        yield "Label column", name(release.label)
    yield "True labels", wording.truth_given(result)


def held(result: AuditResult) -> Pair:
    """Return how many labels there are: classes, private columns or releases."""
    if result.releases:
        return "Releases", rows(len(result.releases))
    if result.labels:
        return "Private columns", rows(len(result.labels))
    return "Classes", rows(result.release.classes)


def digest(result: AuditResult) -> str:
    """Return the digest of the released file."""
    if result.releases:
        return ", ".join(map(digest, result.releases))
    return name(
        result.release.sha256 or "none (a table in memory, or a file with true labels in it)"
    )


def declared(result: AuditResult) -> Iterator[Pair]:
    """Yield what the release states of its mechanism."""
    mechanism = result.mechanism
    yield "Mechanism", name(mechanism.name)
    yield "Declared", wording.SOURCES[mechanism.declared]
    if mechanism.description:
        yield "In words", shown(mechanism.description)


def parameters(result: AuditResult) -> tuple[Pair, ...]:
    """Return the declared parameters."""
    items = list(result.mechanism.parameters.items())[:MOST_ITEMS]
    return tuple((name(str(key)), _parameter(value)) for key, value in items)


def derived(result: AuditResult, printer: Printer) -> tuple[Quantity, ...]:
    """Return what follows from the declaration alone."""
    exact = (e for e in result.estimates if e.kind == "exact")
    return printer.quantities(e for e in exact if e.section == "mechanism" or _adds_up(e))


def _adds_up(estimate: Estimate) -> bool:
    """Return whether a number is ε of several columns or releases, of their declarations alone."""
    return estimate.section == "person" and is_epsilon(estimate)


def claim_in_words(result: AuditResult, printer: Printer) -> str:
    """Return the mechanism and its ε in one line."""
    mechanism = result.mechanism
    if mechanism.declared is None:
        return "nothing"
    described = result.parts and mechanism.description
    title = shown(mechanism.description) if described else name(mechanism.name)
    epsilon = f", ε = {printer.claim}" if printer.claim else ""
    return f"{title}{epsilon}; declared {wording.SOURCES[mechanism.declared]}"


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
