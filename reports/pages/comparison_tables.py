"""The tables of a comparison's page: the releases, and every difference."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from ldpaudit.reports.charts.intervals import Cell, Group, Table
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.harmless import name, shown
from ldpaudit.reports.text.numbers import percent
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.reports.text.wording import VERDICTS
from ldpaudit.result import AuditResult, Estimate, Score
from ldpaudit.result.comparison import Comparison, Difference

TESTS: Final = ("test_accuracy", "test_squared_error")
"""Scores on test rows."""
_MEASURED: Final = "Measured ε"
_NUMBERS: Final = (
    ("Declared ε", ("mechanism.epsilon",)),
    (_MEASURED, ("mechanism.epsilon_lower", "release_only.epsilon_lower")),
    ("Strongest attack’s accuracy", ("attack.best.accuracy",)),
    ("Advantage over the features alone", ("attack.best.advantage",)),
    ("Strongest guess’s squared error", ("numeric.best.mse",)),
    ("Strongest guess within 5 % of the range", ("numeric.best.within_5",)),
    ("Mean loss E[ν]", ("instance_loss.mean_lower", "instance_loss.mean")),
    ("Model on test rows", TESTS),
)
_PRINTED: Final = ("id", "title", "kind", "value", "level", "unit")

Pair = tuple[str, AuditResult]
"""The name of a release and its result."""


def pairs_of(comparison: Comparison) -> list[Pair]:
    """Return each result with the name of its release."""
    names = map(name, comparison.names.values())
    return list(zip(names, comparison.releases, strict=True))


def groups_of(
    pairs: Sequence[Pair], ids: Iterable[str], title: Callable[[Estimate], str] | None = None
) -> list[Group]:
    """Return the numbers of some ids, those of all releases together, titled as the first is."""
    groups: list[Group] = []
    for identifier in ids:
        members = [
            (release, Printer(result).quantity(estimate))
            for release, result in pairs
            if (estimate := result.estimate(identifier)) is not None
        ]
        if members:
            first = members[0][1]
            groups.append((title(first.estimate) if title else first.name, members))
    return groups


def section_scores(pairs: Sequence[Pair], section: str) -> dict[str, tuple[Score, float]]:
    """Return the scores of a section by their ids, each with its largest value."""
    every = [e for _, result in pairs for e in result.estimates if e.section == section]
    scores: dict[str, tuple[Score, float]] = {}
    for e in every:
        if e.score is not None:
            scores[e.id] = e.score, max(e.value, scores.get(e.id, (e.score, e.value))[1])
    return scores


def row_title(estimate: Estimate) -> str:
    """Return what a score is a score of."""
    return name(estimate.score.row if estimate.score else estimate.title)


def release_table(comparison: Comparison) -> Table:
    """Return a column for each release: what it is and its main numbers."""
    pairs = pairs_of(comparison)
    body: list[tuple[Cell, ...]] = [
        ("Mechanism", *(_mechanism(result) for _, result in pairs)),
        ("Judged on its own", *(VERDICTS[result.verdict] for _, result in pairs)),
    ]
    for title, ids in _NUMBERS:
        cells = [_first(result, ids, title == _MEASURED) for _, result in pairs]
        if any(cell is not None for cell in cells):
            body.append((title, *(cell or "–" for cell in cells)))
    return Table(("", *(release for release, _ in pairs)), tuple(body))


def _mechanism(result: AuditResult) -> str:
    noise = result.mechanism.parameters.get("lambda")
    text = name(result.mechanism.name)
    return f"{text}, λ = {noise:.4g}" if isinstance(noise, int | float) else text


def _first(result: AuditResult, ids: Sequence[str], decisive: bool) -> Quantity | None:
    """Return the first number that there is; if ``decisive``, the one behind the verdict."""
    estimate, printer = next(filter(None, map(result.estimate, ids)), None), Printer(result)
    if decisive and printer.decisive is not None:
        return printer.decisive
    return None if estimate is None else printer.quantity(estimate)


def differences_part(comparison: Comparison) -> Part:
    """Return the part that holds every difference."""
    together = percent(comparison.confidence)
    printer = Printer(comparison.releases[0])
    names = comparison.names
    body: list[tuple[Cell, ...]] = []
    for difference in comparison.differences:
        paired = "paired" if difference.paired else "not paired"
        others = (name(names[letter]) for letter in (difference.b, difference.a))
        row = (shown(difference.title, 80), " minus ".join(others))
        what = "" if difference.level is None else paired
        family = "yes" if difference.simultaneous else "–"
        body.append((*row, signed(difference, printer), what or "–", family))
    headers = ("Number", "Which", "Difference", "Rows", f"Together at {together}")
    return Part(
        "differences",
        "Differences",
        "Each number of a later release minus that of the first. Paired differences score the same "
        "rows in both releases.",
        tables=(("Every difference", Table(headers, tuple(body))),) if body else (),
        lead=f"The intervals marked in the last column hold together at {together} confidence "
        "(Bonferroni: half of the error for the best attack, its advantage and the test rows, half "
        "for all others). The rest hold at their own level.",
        missing="" if body else "No number was measured for two releases.",
    )


def signed(difference: Difference, printer: Printer) -> Quantity:
    """Return a difference as people read it, with its sign."""
    fields = difference.model_dump(include=set(_PRINTED))
    if difference.level is not None:
        fields |= {"low": difference.low, "high": difference.high, "side": "two-sided"}
    quantity = printer.quantity(Estimate.model_validate(fields))
    plus = "+" if difference.value > 0 and not quantity.text.startswith("0 ") else ""
    return replace(quantity, text=plus + quantity.text)
