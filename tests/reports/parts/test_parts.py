"""Every audit has its part on the page, also one that nobody here knows."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.results import NAMES, recorded
from releases import written

import ldpaudit
from ldpaudit.reports.html import LARGEST_PAGE
from ldpaudit.reports.pages.view import view_of
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.quantities import Quantity

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


def part(parts: tuple[Part, ...], title: str) -> Part:
    return next(p for p in parts if p.title == title)


def cells(table: Any) -> list[list[str]]:
    return [[c.text if isinstance(c, Quantity) else c for c in row] for row in table.rows]


def test_the_numbers_of_an_unknown_audit_have_a_section_and_their_titles(plug_in: Path) -> None:
    release, truth = written(plug_in, rows=400)
    result = ldpaudit.audit(release, truth=truth, only=("mechanism", "handwriting"))
    view = view_of(result)
    shown = part(view.parts, "Handwriting")
    assert [q.name for q in shown.quantities] == ["Slant of all letters", "Handwriting some loops"]
    assert [figure.title for figure in shown.figures] == ["Ink", "Sizes of letters"]
    assert [title for title, _ in shown.tables] == ["Scores", "A single dot"]
    assert cells(shown.tables[0][1]) == [["The <b>pen</b>", "0.5"]]
    page = result.to_html()
    assert "The &lt;b&gt;pen&lt;/b&gt;" in page
    assert page.index("Slant of all letters") < page.index("Numbers by their ids")


def test_a_page_about_numbers_shows_the_scores_of_guesses_first() -> None:
    view = view_of(recorded("run-laplace"))
    titles = [part.title for part in view.parts]
    assert titles[:2] == ["Every bound of ε", "Attacks on numbers"]
    (_, table), *_ = part(view.parts, "Attacks on numbers").tables
    rows = [row[0] for row in cells(table)]
    assert rows[:3] == [
        "Strongest guess of the number", "Other people’s labels", "Features only, no release"
    ]  # fmt: skip
    assert table.headers[:2] == ("Guess", "Mean squared error")
    assert len(rows) == 7
    tile = next(tile for tile in view.front.tiles if tile.label == "Best guess’s squared error")
    best = recorded("run-laplace").estimate("numeric.best.mse")
    assert best is not None
    assert tile.text == f"{best.value:.3f}"
    listed = [quantity.id for _, quantity in view.numbers]
    assert "numeric.best.mse" in listed


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
def test_every_audit_has_its_part(name: str, title: str, number: str) -> None:
    shown = part(view_of(recorded(name)).parts, title)
    assert number in [quantity.name for quantity in shown.quantities]
    assert len(shown.intro) > 100


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_left_out_of_the_parts(name: str) -> None:
    result = recorded(name)
    view = view_of(result)
    seen = {q.id for p in view.parts for q in p.quantities} | {q.id for q in view.derived}
    tables = [table for p in view.parts for _, table in p.tables]
    tables += [figure.table for p in view.parts for figure in p.figures]
    seen |= {c.id for table in tables for row in table.rows for c in row if isinstance(c, Quantity)}
    assert {e.id for e in result.estimates} <= seen
    page = result.to_html()
    assert len(page.encode()) < LARGEST_PAGE
    assert not re.search(r"<script", page)
