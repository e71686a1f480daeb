"""Every number of a result by its id, and the methods that they cite."""

from collections.abc import Iterator
from typing import Final

from ldpaudit.reports.charts.intervals import Cell, Table
from ldpaudit.reports.text.harmless import as_identifier, shown
from ldpaudit.reports.text.numbers import rows
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult, Estimate

MOST_NUMBERS: Final = 60
"""More estimates than this are in the JSON result only: the page stays under 300 kB."""
Numbers = tuple[tuple[str, Quantity], ...]
"""Page id of each number, and the number."""


def numbers_of(result: AuditResult, printer: Printer, most: int = MOST_NUMBERS) -> Numbers:
    """Return the numbers that the page lists; all evidence of checks, even beyond ``most``."""
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


def number_table(numbers: Numbers) -> tuple[Table, tuple[str, ...]]:
    """Return the numbers by their ids, and the methods that they cite.

    Many numbers share a method and its reference, so each is printed once; the last column holds
    its number in the list, from 1.
    """
    headers = ("Id", "Value", "Unit", "n", "Count", "Method")
    methods: dict[str, int] = {}
    rows = tuple(_number_row(quantity, methods) for _, quantity in numbers)
    return Table(headers, rows), tuple(methods)


def _number_row(quantity: Quantity, methods: dict[str, int]) -> tuple[Cell, ...]:
    estimate = quantity.estimate
    n = "–" if estimate.n is None else rows(estimate.n)
    count = "–" if estimate.count is None else rows(estimate.count)
    reference = f" ({shown(estimate.reference, 200)})" if estimate.reference else ""
    method = (shown(estimate.method) or "not stated") + reference
    number = methods.setdefault(method, len(methods) + 1)
    return estimate.id, quantity, estimate.unit, n, count, str(number)
