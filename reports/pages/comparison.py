"""A comparison as one HTML page: no script, no request to anywhere."""

from dataclasses import dataclass
from typing import Final

from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.html import rendered
from ldpaudit.reports.pages.common import (
    Pair,
    assumptions_of,
    notes_of,
    plugin_pairs,
    run_pairs,
    versions_pair,
)
from ldpaudit.reports.pages.comparison_parts import comparison_parts, first_figures
from ldpaudit.reports.pages.comparison_tables import pairs_of, release_table
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.harmless import PHRASE, name, shown
from ldpaudit.reports.text.numbers import number, percent, rows
from ldpaudit.reports.text.wording import (
    GLOSSARY,
    LIMITS,
    MARKS,
    headline,
    publish_answer,
    truth_given,
)
from ldpaudit.result import AuditResult
from ldpaudit.result.comparison import Comparison, Fingerprint

_DIGEST = 12
_HEADERS: Final = (
    *("Release", "Read from", "Rows", "Classes", "Feature columns", "True labels"),
    *("SHA-256", "Rows with the first one’s features", "Differs in"),
)
_LOOKS: Final = {"publish": "pass", "do not publish": "fail"}


@dataclass(frozen=True)
class Decided:
    """A release, whether to publish it, and what to do first."""

    name: str
    look: str
    publish: str
    verdict: str
    step: str


@dataclass(frozen=True)
class ComparisonView:
    """The page of a comparison."""

    title: str
    access: str
    sentences: tuple[Pair, ...]
    remark: str
    decisions: tuple[Decided, ...]
    figures: tuple[Figure, ...]
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
    sentences = comparison.sentences or (comparison.sentence,)
    names = map(name, comparison.names.values())
    decided = zip(names, comparison.releases, strict=True)
    return ComparisonView(
        title=" against ".join(map(name, comparison.names.values())),
        access=comparison.access,
        sentences=tuple(_titled(shown(text, 3 * PHRASE)) for text in sentences),
        remark=shown(comparison.remark),
        decisions=tuple(_decided(*pair) for pair in decided),
        figures=first_figures(pairs_of(comparison)),
        releases=release_table(comparison),
        data=_data(comparison),
        forced=any(print_.mismatch for print_ in comparison.fingerprints),
        parts=comparison_parts(comparison),
        warnings=_notes(comparison, "warning"),
        remarks=_notes(comparison, "info"),
        assumptions=assumptions_of(comparison.releases, most=4),
        command=shown(comparison.run.command, 2000),
        run=_run(comparison),
        version=name(comparison.ldpaudit_version),
    )


def _titled(sentence: str) -> Pair:
    """Return what a sentence is about, and the rest of it."""
    title, colon, rest = sentence.partition(": ")
    return (title, rest) if colon else ("", sentence)


def _decided(release: str, result: AuditResult) -> Decided:
    return Decided(
        release,
        _LOOKS.get(result.decision, "inconclusive"),
        publish_answer(result),
        headline(result),
        shown(next(iter(result.next_steps), "")),
    )


def _data(comparison: Comparison) -> Table:
    each = zip(comparison.fingerprints, comparison.releases, strict=True)
    return Table(_HEADERS, tuple(_print_row(*pair) for pair in each))


def _print_row(print_: Fingerprint, result: AuditResult) -> tuple[str, ...]:
    digest = "none" if print_.sha256 is None else f"{print_.sha256[:_DIGEST]}…"
    shared = "–" if print_.shared_rows is None else number(print_.shared_rows)
    return (
        name(print_.name),
        "the released file" if print_.source == "data" else "a stored result",
        rows(print_.rows),
        rows(print_.classes),
        rows(print_.features),
        truth_given(result),
        digest,
        shared,
        shown(", ".join(print_.mismatch)) or "nothing known",
    )


def _notes(comparison: Comparison, level: str) -> tuple[Pair, ...]:
    notes = notes_of(comparison.notes, level)
    for release, result in zip(comparison.names.values(), comparison.releases, strict=True):
        notes += notes_of(result.notes, level, f"{name(release)}, ")
    return tuple(dict.fromkeys(notes))


def _run(comparison: Comparison) -> tuple[Pair, ...]:
    seed, *others = run_pairs(comparison.run, "none given")
    confidence = f"{percent(comparison.confidence)}, for all differences together"
    schema = f"schema {comparison.schema_version}"
    pairs = [seed, ("Confidence", confidence), *others, ("Result", schema)]
    return (*pairs, versions_pair(comparison.run), *plugin_pairs(comparison.run.plugins))
