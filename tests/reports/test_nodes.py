"""Several columns or releases: every format shows all of them, the worst first."""

import json
import re

import pytest

from ldpaudit.commands.run.work import said_of
from ldpaudit.commands.schemas import schema_of
from ldpaudit.commands.shell import tell
from ldpaudit.errors import InputError
from ldpaudit.reports import Surroundings, render
from ldpaudit.reports.annotations import annotations
from ldpaudit.reports.pages.audit import fitting
from ldpaudit.reports.text.pieces import Piece, worst_first
from ldpaudit.reports.text.wording import headline, publish_line
from ldpaudit.result import AuditResult, Check

NESTED = ["release-1", "release-2", "release-2/column-1", "release-2/column-2"]


def test_parts_have_keys_and_ids_beside_each_other(nested: AuditResult) -> None:
    assert list(nested.parts)[:4] == NESTED
    assert nested["release-2/column-2/mechanism.epsilon_lower"].value == 1.9476
    assert nested["person.epsilon"].value == 2.5
    with pytest.raises(KeyError, match=r"release-2/column-2/mechanism\.epsilon_lower"):
        nested["release-2/column-2/mechanism.epsilon_lowr"]
    assert repr(nested).startswith("AuditResult(2 releases, do not publish: ")


def test_frames_say_of_which_part_a_row_is(nested: AuditResult) -> None:
    for frame in (nested.to_frame(), nested.attacks, nested.to_frame("checks")):
        assert frame.columns[0] == "of"
    frame = nested.to_frame()
    assert list(frame["of"].unique())[:5] == ["all", *NESTED]
    assert set(frame.loc["mechanism.epsilon"]["of"]) == {*nested.parts} - {"release-2"}
    assert "of" not in nested.releases[0].to_frame()


def test_the_worst_part_comes_first(whole: AuditResult, nested: AuditResult) -> None:
    assert [piece.key for piece in worst_first(whole)] == ["column-2", "column-1", "column-3"]
    assert [piece.key for piece in worst_first(nested)][:3] == [
        "release-2",
        "release-2/column-2",
        "release-2/column-1",
    ]
    assert worst_first(whole)[0].title == "Column income"


def test_a_part_gives_the_reason_of_its_gravest_check(whole: AuditResult) -> None:
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
        (checks[:1], "pass", "No violation found: warned"),
    ):
        part = whole.labels[0].model_copy(update={"checks": tuple(left), "verdict": verdict})
        assert Piece("column-1", part).verdict == reason


def test_stored_it_is_valid_and_the_same(nested: AuditResult) -> None:
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
def _no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpaudit.reports.charts.svg.has_addresses_for", lambda _: False)


@pytest.mark.usefixtures("_no_charts")
def test_the_page_has_a_table_and_every_part_folded(nested: AuditResult) -> None:
    page = render(nested, "html")
    section = page[page.index('id="parts"') :].partition("</section>")[0]
    places = [piece.place for piece in worst_first(nested)]
    assert re.findall(r'href="#([^"]*)"', section) == places
    assert all(f'<details class="folded" id="{place}">' in page for place in places)
    assert page.index('class="verdict') < page.index('id="parts"') < page.index('id="checks"')
    assert {"1.947", "87.3"} <= set(re.findall(r"\d+\.\d+", section))


def test_a_page_too_large_drops_tables_and_pictures(
    whole: AuditResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldpaudit.reports.pages.audit.LARGEST", 125_000)
    page = render(whole, "html")
    assert len(page.encode()) < 125_000
    assert page.count("left out to keep this page small") >= 2
    assert page.count("<figure") >= 1
    assert all(f'id="column-{i}"' in page for i in (1, 2, 3))


def test_what_has_no_room_gives_way_from_the_best_part_on() -> None:
    sizes = [[9, 5, 1]] * 3
    assert fitting(sizes, 27) == [0, 0, 0]
    assert fitting(sizes, 20) == [0, 1, 1]
    assert fitting(sizes, 12) == [1, 1, 2]
    assert fitting(sizes, 0) == [2, 2, 2]


def test_the_summary_has_a_line_for_each(
    whole: AuditResult, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(said_of(whole, quiet=False))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    parts = [line for line in lines if re.match(r"(fail|pass) +Column \w", line)]
    assert [re.search(r"Column (\w+)", line)[1] for line in parts] == ["income", "1", "3"]
    assert "certified ε ≥ 1.947 nats; best attack is right for 87.3\xa0%" in parts[0]
    assert any("claimed-epsilon of column income: a certified" in line for line in lines)
    assert sum("waiver of renyi-epsilon" in line for line in lines) == 1
    tell(said_of(whole, quiet=True))
    assert capsys.readouterr().out.count("\n") == 1


def test_markdown_and_annotations_name_the_part(whole: AuditResult) -> None:
    text = render(whole, "markdown")
    assert "| Column income | randomized-response, ε = 1 |" in text
    assert "`column-2/claimed-epsilon`" in text
    assert text.count("\n") < 60
    (line,) = annotations(whole, Surroundings())
    assert "title=ldpaudit%3A column-2/claimed-epsilon::" in line


def test_a_waived_part_is_not_hidden(whole: AuditResult) -> None:
    waived = whole.model_copy(update={"labels": (whole.labels[0],) * 2, "verdict": "pass"})
    assert headline(waived) == "Violation found, waived"
    assert publish_line(waived) == "Publish: yes, by waiver."
