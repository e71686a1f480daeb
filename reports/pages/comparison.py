"""A comparison as one HTML page: no script, no request to anywhere."""

from dataclasses import dataclass
from typing import Final

from ldpaudit.reports.charts.intervals import Table
from ldpaudit.reports.html import rendered
from ldpaudit.reports.pages.common import (
    Pair,
    assumptions_of,
    notes_of,
    plugin_pairs,
    run_pairs,
    versions_pair,
)
from ldpaudit.reports.pages.comparison_parts import comparison_parts
from ldpaudit.reports.pages.comparison_tables import release_table
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.harmless import PHRASE, name, shown
from ldpaudit.reports.text.numbers import number, percent, rows
from ldpaudit.reports.text.wording import GLOSSARY, LIMITS, MARKS
from ldpaudit.result.comparison import Comparison, Fingerprint

_DIGEST = 12
_HEADERS: Final = (
    *("Release", "Read from", "Rows", "Classes", "Feature columns", "True labels"),
    *("SHA-256", "Rows with A’s features", "Differs in"),
)


@dataclass(frozen=True)
class ComparisonView:
    """The page of a comparison."""

    title: str
    sentence: str
    releases: Table
    data: Table
    forced: bool
    parts: tuple[Part, ...]
    warnings: tuple[Pair, ...]
    remarks: tuple[Pair, ...]
    assumptions: tuple[Pair, ...]
    command: str
    run: tuple[Pair, ...]
    version: str


def render_comparison(comparison: Comparison) -> str:
    """Return the page: a pure function of the comparison, the same text every time."""
    return rendered(
        "comparison.html.j2",
        view=view_of(comparison),
        marks=MARKS,
        limits=LIMITS,
        glossary=GLOSSARY,
    )


def view_of(comparison: Comparison) -> ComparisonView:
    """Return everything that the page shows."""
    names = [f"{p.letter} {name(p.name)}" for p in comparison.fingerprints]
    return ComparisonView(
        title=", ".join(names),
        sentence=shown(comparison.sentence, max(4, len(names)) * PHRASE),
        releases=release_table(comparison),
        data=_data(comparison.fingerprints),
        forced=any(print_.mismatch for print_ in comparison.fingerprints),
        parts=comparison_parts(comparison),
        warnings=_notes(comparison, "warning"),
        remarks=_notes(comparison, "info"),
        assumptions=assumptions_of(comparison.releases, most=4),
        command=shown(comparison.run.command, 2000),
        run=_run(comparison),
        version=name(comparison.ldpaudit_version),
    )


def _data(prints: tuple[Fingerprint, ...]) -> Table:
    return Table(_HEADERS, tuple(_print_row(print_) for print_ in prints))


def _print_row(print_: Fingerprint) -> tuple[str, ...]:
    digest = "none" if print_.sha256 is None else f"{print_.sha256[:_DIGEST]}…"
    shared = "–" if print_.shared_rows is None else number(print_.shared_rows)
    return (
        f"{print_.letter} · {name(print_.name)}",
        "the released file" if print_.source == "data" else "a stored result",
        rows(print_.rows),
        rows(print_.classes),
        rows(print_.features),
        "given" if print_.truth else "not given",
        digest,
        shared,
        shown(", ".join(print_.mismatch)) or "nothing known",
    )


def _notes(comparison: Comparison, level: str) -> tuple[Pair, ...]:
    notes = notes_of(comparison.notes, level)
    for print_, result in zip(comparison.fingerprints, comparison.releases, strict=True):
        notes += notes_of(result.notes, level, f"{print_.letter}, ")
    return tuple(dict.fromkeys(notes))


def _run(comparison: Comparison) -> tuple[Pair, ...]:
    seed, *others = run_pairs(comparison.run, "none given")
    confidence = f"{percent(comparison.confidence)}, for all differences together"
    schema = f"schema {comparison.schema_version}"
    pairs = [seed, ("Confidence", confidence), *others, ("Result", schema)]
    return (*pairs, versions_pair(comparison.run), *plugin_pairs(comparison.run))
