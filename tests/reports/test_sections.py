"""Every audit has its section on the page, also one that nobody here knows; no number is lost."""

import ast
import importlib
import json
import math
import re
import sys
import threading
import types
from pathlib import Path

import pytest
from golden.results import NAMES, recorded
from other_pages import comparison
from releases import written

import ldpaudit
from ldpaudit.cli.schemas import schema_of
from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run.work import is_small, said_of
from ldpaudit.commands.shell import tell
from ldpaudit.errors import InputError
from ldpaudit.extras.compare.page import render_comparison
from ldpaudit.reports import Surroundings, render
from ldpaudit.reports.charts.svg import prepare
from ldpaudit.reports.pages.audit import fitting
from ldpaudit.reports.pages.sections import sections_of
from ldpaudit.reports.text.answers import annotations
from ldpaudit.reports.text.pieces import Piece, worst_first
from ldpaudit.reports.text.quantities import Printer, Quantity, is_epsilon, mark_of, measured_called
from ldpaudit.reports.text.wording import headline, publish_line
from ldpaudit.result import AuditResult, Check, Estimate

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
def plug_in(tmp_path, monkeypatch):
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


def every_section(result):
    def walk(sections):
        for section in sections:
            yield section
            yield from walk((*section.within, *section.folded))

    yield from walk(sections_of(result, Printer(result)))


def section(result, title):
    return next(one for one in every_section(result) if one.title == title)


def cells(table):
    return [[c.text if isinstance(c, Quantity) else c for c in row] for row in table.rows]


def test_the_numbers_of_an_unknown_audit_have_a_section_and_their_titles(plug_in):
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


def test_a_page_about_numbers_shows_the_scores_of_guesses():
    shown = section(recorded("run-laplace"), "Attacks on numbers")
    ((_, table),) = shown.tables
    rows = [row[0] for row in cells(table)]
    assert rows[:3] == [
        "Strongest guess of the number", "Other people’s labels", "Features only, no release"
    ]  # fmt: skip
    assert (table.headers[:2], len(rows)) == (("Guess", "Mean squared error"), 7)
    best = recorded("run-laplace").estimate("numeric.best.mse")
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
def test_every_audit_has_its_section(name, title, number):
    shown = section(recorded(name), title)
    assert number in [quantity.name for quantity in shown.quantities]
    assert len(shown.sentences[0]) > 100


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_left_out_of_the_sections(name):
    result = recorded(name)
    every = [*every_section(result)]
    seen = {q.id for one in every for q in one.quantities}
    tables = [table for one in every for _, table in one.tables]
    tables += [figure.table for one in every for figure in one.figures]
    seen |= {c.id for table in tables for row in table.rows for c in row if isinstance(c, Quantity)}
    derived = {e.id for e in result.estimates if e.kind == "exact" and e.section == "mechanism"}
    assert {e.id for e in result.estimates} <= seen | derived


NESTED = ["release-1", "release-2", "release-2/column-1", "release-2/column-2"]


def test_parts_have_keys_and_ids_beside_each_other(nested):
    assert list(nested.parts)[:4] == NESTED
    assert nested["release-2/column-2/mechanism.epsilon_lower"].value == 1.9476
    assert nested["person.epsilon"].value == 2.5
    with pytest.raises(KeyError, match=r"release-2/column-2/mechanism\.epsilon_lower"):
        nested["release-2/column-2/mechanism.epsilon_lowr"]
    assert repr(nested).startswith("AuditResult(2 releases, do not publish: ")


def test_frames_say_of_which_part_a_row_is(nested):
    for frame in (nested.to_frame(), nested.attacks, nested.to_frame("checks")):
        assert frame.columns[0] == "of"
    frame = nested.to_frame()
    assert list(frame["of"].unique())[:5] == ["all", *NESTED]
    assert set(frame.loc["mechanism.epsilon"]["of"]) == {*nested.parts} - {"release-2"}
    assert "of" not in nested.releases[0].to_frame()


def test_the_worst_part_comes_first(whole, nested):
    assert [piece.key for piece in worst_first(whole)] == ["column-2", "column-1", "column-3"]
    assert [piece.key for piece in worst_first(nested)][:3] == [
        "release-2",
        "release-2/column-2",
        "release-2/column-1",
    ]
    assert worst_first(whole)[0].title == "Column income"


def test_a_part_gives_the_reason_of_its_gravest_check(whole):
    checks = [
        Check(
            id=reason,
            question="?",
            limit=1.0,
            observed=2.0,
            level=level,
            verdict=verdict,
            reason=reason,
        )
        for level, verdict, reason in (
            ("warn", "fail", "warned"),
            ("error", "inconclusive", "too-weak"),
            ("error", "fail", "found"),
        )
    ]
    for left, verdict, reason in (
        (checks, "fail", "Violation found: found"),
        (checks[:2], "inconclusive", "Inconclusive: too-weak"),
        (checks[:1], "pass", "No violation found. Warning: warned"),
    ):
        part = whole.labels[0].model_copy(update={"checks": tuple(left), "verdict": verdict})
        assert Piece("column-1", part).verdict == reason


def test_stored_it_is_valid_and_the_same(nested):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads(schema_of("run"))
    jsonschema.Draft202012Validator.check_schema(schema)
    stored = json.loads(render(nested, "json"))
    jsonschema.validate(stored, schema)
    assert AuditResult.from_json(json.dumps(stored)) == nested
    stored["releases"][1]["labels"][1]["verdict"] = "pass"
    with pytest.raises(InputError, match="contradicts itself"):
        AuditResult.from_json(json.dumps(stored))


@pytest.fixture
def _no_charts(monkeypatch):
    monkeypatch.setattr("ldpaudit.reports.charts.svg.has_addresses_for", lambda _: False)


@pytest.mark.usefixtures("_no_charts")
def test_the_page_has_a_table_and_every_part_folded(nested):
    page = render(nested, "html")
    section = page[page.index('id="parts"') :].partition("</section>")[0]
    places = [piece.place for piece in worst_first(nested)]
    assert re.findall(r'href="#([^"]*)"', section) == places
    assert all(f'<details class="folded" id="{place}">' in page for place in places)
    assert page.index('class="verdict') < page.index('id="parts"') < page.index('id="checks"')
    assert {"1.947", "87.3"} <= set(re.findall(r"\d+\.\d+", section))


def charts_threads():
    return [thread for thread in threading.enumerate() if thread.name == "charts"]


def test_the_engine_of_charts_is_started_once_there_is_room(monkeypatch):
    started = []

    def fails(specification, **more):
        started.append(more)
        raise ValueError("It could not be started.")

    monkeypatch.setitem(sys.modules, "vl_convert", types.SimpleNamespace(vegalite_to_svg=fails))
    for room in (False, True):
        monkeypatch.setattr("ldpaudit.reports.charts.svg.has_addresses_for", lambda _, r=room: r)
        prepare()
        for thread in charts_threads():
            thread.join()
        # It loads nothing, and a page says itself that a chart is not drawn.
        assert started == ([{"allowed_base_urls": []}] if room else [])


def test_the_engine_waits_where_an_audit_needs_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "release.csv"
    path.write_text("x,label\n1,0\n")
    asked = RunRequest(release=(str(path),))
    assert is_small(asked)
    assert not is_small(RunRequest(release=(str(path), str(tmp_path / "none.csv"))))
    monkeypatch.setattr("ldpaudit.commands.run.work.SMALL", 5)
    assert not is_small(asked)


def test_a_page_too_large_drops_tables_and_pictures(whole, monkeypatch):
    monkeypatch.setattr("ldpaudit.reports.pages.audit.LARGEST", 125_000)
    page = render(whole, "html")
    assert len(page.encode()) < 125_000
    assert page.count("left out to keep this page small") >= 2
    assert page.count("<figure") >= 1
    assert all(f'id="column-{i}"' in page for i in (1, 2, 3))


def test_what_has_no_room_gives_way_from_the_best_part_on():
    sizes = [[9, 5, 1]] * 3
    assert (fitting(sizes, 27), fitting(sizes, 20)) == ([0, 0, 0], [0, 1, 1])
    assert (fitting(sizes, 12), fitting(sizes, 0)) == ([1, 1, 2], [2, 2, 2])


def test_the_summary_has_a_line_for_each(whole, capsys):
    tell(said_of(whole, quiet=False))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    parts = [line for line in lines if re.match(r"(fail|pass) +Column \w", line)]
    assert [re.search(r"Column (\w+)", line)[1] for line in parts] == ["income", "1", "3"]
    assert "certified ε ≥ 1.947 nats; best attack is right for 87.3\xa0%" in parts[0]
    assert any("claimed-epsilon of column income: a certified" in line for line in lines)
    assert sum("waiver of renyi-epsilon" in line for line in lines) == 1
    tell(said_of(whole, quiet=True))
    assert capsys.readouterr().out.count("\n") == 1


def test_markdown_and_annotations_name_the_part(whole):
    text = render(whole, "markdown")
    assert "| Column income | randomized-response, ε = 1 |" in text
    assert "`column-2/claimed-epsilon`" in text
    assert text.count("\n") < 60
    (line,) = annotations(whole, Surroundings())
    assert "title=ldpaudit%3A column-2/claimed-epsilon::" in line


def test_a_waived_part_is_not_hidden(whole):
    waived = whole.model_copy(update={"labels": (whole.labels[0],) * 2, "verdict": "pass"})
    assert headline(waived) == "Violation found, waived"
    assert publish_line(waived) == "Publish: yes, by waiver."


def estimate(**fields):
    return Estimate.model_validate({"id": "a.b", "kind": "certified", "level": 0.95} | fields)


@pytest.mark.parametrize(
    ("fields", "text", "interval", "mark"),
    [
        ({"value": 0.96349, "side": "lower"}, "≥ 0.963", "", "lower"),
        ({"value": 0.96349, "low": 0.96349, "side": "lower"}, "≥ 0.963", "", "lower"),
        ({"value": 0.97, "low": 0.96349, "side": "lower"}, "0.97", "≥ 0.963", "lower"),
        ({"value": 2.00001, "side": "upper"}, "≤ 2.001", "", "upper"),
        (
            {"value": 0.84951, "low": 0.84649, "high": 0.85201, "side": "two-sided"},
            "0.850",
            "0.846 to 0.853",
            "interval",
        ),
        ({"value": 0.5, "kind": "exact", "level": None}, "0.5", "", "exact"),
        ({"value": math.inf, "kind": "exact", "level": None}, "∞", "", "exact"),
        (
            {"value": 1.5, "kind": "estimated", "low": 1.4, "side": "lower"},
            "1.5",
            "≥ 1.4",
            "estimated",
        ),
        ({"value": 1210.4, "unit": "rows", "side": "upper"}, "≤ 1,211", "", "upper"),
    ],
)
def test_texts(build, fields, text, interval, mark):
    quantity = Printer(build("pass")).quantity(estimate(**fields))
    assert (quantity.text, quantity.interval, quantity.mark) == (text, interval, mark)


def test_words(build):
    printer = Printer(build("pass"))
    lower = printer.quantity(estimate(value=1, side="lower", level=0.975))
    assert lower.words == "certified, 97.5\xa0%, lower bound"
    assert printer.quantity(estimate(value=1, kind="exact", level=None)).words == "exact"


def test_a_number_is_printed_with_the_digits_that_its_check_needs(build):
    result = build("fail", measured=1.00004)
    printer = Printer(result)
    bound = result.estimate("mechanism.epsilon_lower")
    assert bound is not None
    assert printer.quantity(bound).text == "≥ 1.00004"
    assert printer.observed_and_limit(result.checks[0]) == ("1.00004", "1")


def test_the_claim_has_the_digits_that_tell_it_from_every_bound(build):
    claim = math.log(199)
    assert Printer(build("pass", epsilon=claim)).claim == "5.293"
    assert Printer(build("pass", epsilon=claim, measured=claim - 1e-7)).claim == "5.293305"
    assert Printer(build("inconclusive", epsilon=None)).claim == ""
    assert Printer(build("inconclusive", epsilon=math.inf)).claim == "∞"


def test_checks_without_numbers(build):
    result = build("inconclusive", epsilon=None)
    assert Printer(result).observed_and_limit(result.checks[0]) == ("–", "–")


def test_what_lies_on_the_axis_of_epsilon():
    assert is_epsilon(estimate(value=1, side="lower", axis="epsilon", unit="nats"))
    assert not is_epsilon(estimate(value=1, side="lower", unit="nats"))
    assert not is_epsilon(estimate(value=1, side="lower", axis="epsilon", unit="proportion"))


def test_marks_of_all_kinds_differ():
    marks = [
        mark_of(estimate(value=1, side="lower")),
        mark_of(estimate(value=1, side="upper")),
        mark_of(estimate(value=1, low=0, high=2, side="two-sided")),
        mark_of(estimate(value=1, kind="exact", level=None)),
        mark_of(estimate(value=1, kind="estimated")),
    ]
    assert len(set(marks)) == len(marks)


REPORTS = Path(__file__).parents[2] / "reports"
APART = {
    "split", "rsplit", "partition", "rpartition", "startswith", "endswith", "removeprefix",
    "removesuffix", "count", "index", "find",
}  # fmt: skip
IDS = {"id", "identifier", "ids", "identifiers"}


def parsed(tree):
    """Yield the lines where a string method takes an id apart, or an id is sliced."""
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and node.func.attr in APART and name_of(node.func.value) in IDS:
            yield node.lineno
        sliced = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        if sliced and name_of(node.value) in ("id", "identifier"):
            yield node.lineno


def name_of(node):
    return getattr(node, "attr", None) or getattr(node, "id", "")


@pytest.mark.parametrize("path", sorted(REPORTS.rglob("*.py")), ids=lambda path: path.name)
def test_no_id_is_taken_apart(path):
    assert list(parsed(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_the_search_finds_what_it_looks_for():
    for line in (
        "e.id.split('.')",
        "e.id.startswith('a.')",
        "identifier.partition('.')",
        "e.id[:3]",
    ):
        assert list(parsed(ast.parse(line))) == [1]


def test_measured_epsilon_is_called_as_the_weakest_of_its_numbers_may_be():
    """One rule for the page of an audit and that of a comparison."""
    result = recorded("run-rr-all-audits")
    (proven,) = (e for e in result.estimates if e.id == "mechanism.epsilon_lower")
    printer = Printer(result)
    guessed = proven.model_copy(update={"kind": "estimated"})
    plain = Estimate.estimated("mechanism.epsilon_observed", "ε", 1.0, unit="nats")
    kinds = [[proven], [proven, guessed], [guessed], [proven, plain], []]
    assert [measured_called(map(printer.quantity, some)) for some in kinds] == [
        "Proven so far",
        "Measured so far",
        "Measured so far",
        "Measured ε",
        "Measured ε",
    ]
    assert printer.called == "Proven so far"
    assert "Proven so far: ε" in render_comparison(comparison())
