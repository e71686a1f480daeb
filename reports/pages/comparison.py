"""A comparison as one HTML page: no script, no request to anywhere."""

from dataclasses import dataclass

from ldpaudit.comparison import Comparison, Fingerprint
from ldpaudit.reports.charts.intervals import Table
from ldpaudit.reports.html import rendered
from ldpaudit.reports.pages.comparison_parts import comparison_parts
from ldpaudit.reports.pages.comparison_tables import release_table
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.harmless import PHRASE, name, shown
from ldpaudit.reports.text.numbers import number, percent, rows
from ldpaudit.reports.text.wording import GLOSSARY, LIMITS, MARKS, audit_name
from ldpaudit.result import Curve, Estimate

_DIGEST = 12

Pair = tuple[str, str]


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
        assumptions=_assumptions(comparison),
        command=shown(comparison.run.command, 2000),
        run=_run(comparison),
        version=name(comparison.ldpaudit_version),
    )


def _data(prints: tuple[Fingerprint, ...]) -> Table:
    headers = (
        "Release",
        "Read from",
        "Rows",
        "Classes",
        "Feature columns",
        "True labels",
        "SHA-256",
        "Rows with A’s features",
        "Differs in",
    )
    return Table(headers, tuple(_print_row(print_) for print_ in prints))


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
    found = [(audit_name(n.audit), shown(n.text)) for n in comparison.notes if n.level == level]
    for print_, result in zip(comparison.fingerprints, comparison.releases, strict=True):
        found += [
            (f"{print_.letter}, {audit_name(note.audit)}", shown(note.text))
            for note in result.notes
            if note.level == level
        ]
    return tuple(dict.fromkeys(found))


def _assumptions(comparison: Comparison) -> tuple[Pair, ...]:
    """Return each assumption once, with the names of some of the numbers that rest on it."""
    held: dict[str, list[str]] = {}
    for result in comparison.releases:
        parts: list[Estimate | Curve] = [*result.estimates, *result.curves]
        for part in parts:
            for assumption in part.assumptions:
                names = held.setdefault(shown(assumption[:1].upper() + assumption[1:]), [])
                if (title := shown(part.title)) not in names:
                    names.append(title)
    return tuple((text, _some(names)) for text, names in held.items())


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return "; ".join(names[:4]) + more


def _run(comparison: Comparison) -> tuple[Pair, ...]:
    run = comparison.run
    versions = (f"{name(key)} {name(value)}" for key, value in sorted(run.versions.items()))
    policy = f"SHA-256 {name(run.policy_sha256)}" if run.policy_sha256 else "none given"
    return (
        ("Seed", "not fixed" if run.seed is None else str(run.seed)),
        ("Confidence", f"{percent(comparison.confidence)}, of all differences together"),
        ("Threads", rows(run.threads)),
        ("Time", f"{number(run.seconds, digits=1)} s"),
        ("Policy", policy),
        ("Result", f"schema {comparison.schema_version}"),
        ("Versions", ", ".join(versions)),
    )
