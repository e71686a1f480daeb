"""Every audit has its section on the page, also one that nobody here knows; no number is lost."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden.results import NAMES, recorded
from releases import written

import ldpaudit
from ldpaudit.reports.charts.figure import Table
from ldpaudit.reports.pages.page import Section
from ldpaudit.reports.pages.sections import sections_of
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult

PLUG_IN = """
from ldpaudit.result import Curve, Estimate, Finding, Histogram, Score

class HandwritingAudit:
    id = "handwriting"

    def unavailable(self, context):
        return None

    def run(self, context):
        score = Score(subject="pen", measure="share", row="The <b>pen</b>", column="share")
        return Finding(
            estimates=(
                Estimate.lower_bound(
                    "handwriting.slant", "Slant of all letters", 0.25, 0.95, unit="nats"
                ),
                Estimate(id="handwriting.some_loops", kind="exact", value=7),
                Estimate.interval(
                    "handwriting.pen.share", score.title, 0.5, (0.4, 0.6), 0.95, score=score
                ),
            ),
            curves=(
                Curve(id="handwriting.ink", title="Ink", kind="exact", x=(1, 2), value=(3, 4)),
                Curve(id="handwriting.dot", title="A single dot", kind="exact", x=(1,), value=(3,)),
            ),
            histograms=(
                Histogram(
                    id="handwriting.sizes", title="Sizes of letters", kind="estimated",
                    edges=(0, 1, 2), counts=(20, 30), unit="1",
                ),
            ),
        )
"""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "handwriting.py").write_text(PLUG_IN)
    info = tmp_path / "handwriting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: handwriting\nVersion: 1.0\n")
    entry = "[ldpaudit.audits]\nhandwriting = handwriting:HandwritingAudit\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("handwriting", None)


def every_section(result: AuditResult) -> Iterator[Section]:
    def walk(sections: tuple[Section, ...]) -> Iterator[Section]:
        for section in sections:
            yield section
            yield from walk((*section.within, *section.folded))

    yield from walk(sections_of(result, Printer(result)))


def section(result: AuditResult, title: str) -> Section:
    return next(one for one in every_section(result) if one.title == title)


def cells(table: Table) -> list[list[str]]:
    return [[c.text if isinstance(c, Quantity) else c for c in row] for row in table.rows]


def test_the_numbers_of_an_unknown_audit_have_a_section_and_their_titles(plug_in: Path) -> None:
    release, truth = written(plug_in, rows=400)
    result = ldpaudit.audit(release, truth=truth, only=("mechanism", "handwriting"))
    shown = section(result, "Handwriting")
    assert [q.name for q in shown.quantities] == ["Slant of all letters", "Handwriting some loops"]
    assert [figure.title for figure in shown.figures] == ["Ink", "Sizes of letters"]
    assert [title for title, _ in shown.tables] == ["Scores", "A single dot"]
    assert cells(shown.tables[0][1]) == [["The <b>pen</b>", "0.5"]]
    page = result.to_html()
    assert "The &lt;b&gt;pen&lt;/b&gt;" in page
    assert page.index("Slant of all letters") < page.index("Numbers by their ids")


def test_a_page_about_numbers_shows_the_scores_of_guesses() -> None:
    shown = section(recorded("run-laplace"), "Attacks on numbers")
    ((_, table),) = shown.tables
    rows = [row[0] for row in cells(table)]
    assert rows[:3] == [
        "Strongest guess of the number", "Other people’s labels", "Features only, no release"
    ]  # fmt: skip
    assert table.headers[:2] == ("Guess", "Mean squared error")
    assert len(rows) == 7
    best = recorded("run-laplace").estimate("numeric.best.mse")
    assert best is not None
    assert (
        f"{best.value:.3f}" in section(recorded("run-laplace"), "What attackers learn").sentences[0]
    )


@pytest.mark.parametrize(
    ("name", "title", "number"),
    [
        ("run-double-rr", "Synthetic features", "Share of rows with synthetic features"),
        (
            "run-model-based-rr-posterior",
            "True against re-drawn labels",
            "True or re-drawn label, guessed with the release",
        ),
        (
            "run-label-proportions",
            "Aggregates of labels",
            "The same, as expected from the features",
        ),
    ],
)
def test_every_audit_has_its_section(name: str, title: str, number: str) -> None:
    shown = section(recorded(name), title)
    assert number in [quantity.name for quantity in shown.quantities]
    assert len(shown.sentences[0]) > 100


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_left_out_of_the_sections(name: str) -> None:
    result = recorded(name)
    every = [*every_section(result)]
    seen = {q.id for one in every for q in one.quantities}
    tables = [table for one in every for _, table in one.tables]
    tables += [figure.table for one in every for figure in one.figures]
    seen |= {c.id for table in tables for row in table.rows for c in row if isinstance(c, Quantity)}
    derived = {e.id for e in result.estimates if e.kind == "exact" and e.section == "mechanism"}
    assert {e.id for e in result.estimates} <= seen | derived
