"""``ldpaudit compare`` from files and from stored results: numbers, refusals, files, secrecy."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared_releases import Files, make

from ldpaudit.result.comparison import Comparison
from ldpaudit.result.numbers import number

Ran = tuple[int, str, str]
Command = Callable[..., Ran]
FAST = ("--only", "mechanism", "--only", "label-inference", "--threads", "1")


def one_line(ran: Ran) -> str:
    status, out, err = ran
    lines = [line for line in err.splitlines() if not line.endswith("…")]
    assert status == 2, (out, err)
    assert len(lines) == 1, err
    return lines[0]


def compared(command: Command, folder: Path, *words: Any) -> tuple[Ran, Comparison, str]:
    outputs = ("--json", folder / "c.json", "--html", folder / "c.html")
    ran = command("compare", *words, *outputs)
    assert ran[0] == 0, ran
    comparison = Comparison.from_json((folder / "c.json").read_text())
    return ran, comparison, (folder / "c.html").read_text()


@pytest.fixture(scope="module")
def done(files: Files, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Comparison, str]:
    """RR against double RR with everything, once for all tests."""
    from ldpaudit.commands.compare.work import compare
    from ldpaudit.commands.requests import CompareRequest
    from ldpaudit.reports.pages.comparison import render_comparison
    from ldpaudit.work.documents import as_json

    request = CompareRequest(
        inputs=(str(files.rr), str(files.double)),
        truth=str(files.truth),
        test=str(files.test),
        synthetic=(str(files.synthetic),),
        only=("mechanism", "label-inference"),
        threads=1,
    )
    comparison = compare(request)
    return as_json(comparison.model_dump()), comparison, render_comparison(comparison)


def test_double_randomized_response_hides_more_and_costs_accuracy(done: Any) -> None:
    _, comparison, _ = done
    best, test = (
        comparison.difference("attack.best.accuracy"),
        comparison.difference("test_accuracy"),
    )
    assert best.kind == "certified"
    assert best.paired
    assert best.simultaneous
    assert best.high < 0
    assert test.low <= test.value <= test.high
    assert test.n == 2000
    a, b = comparison.releases
    for result in (a, b):
        accuracy = result.estimate("test_accuracy")
        assert accuracy.low is not None
        assert accuracy.value > 0.8
    strongest = [result.estimate("attack.best.accuracy") for result in (a, b)]
    assert best.value == pytest.approx(strongest[1].value - strongest[0].value)
    gain = comparison.difference("attack.best.advantage")
    assert gain.paired
    assert gain.simultaneous
    advantages = [result.estimate("attack.best.advantage") for result in (a, b)]
    assert gain.value == pytest.approx(advantages[1].value - advantages[0].value)
    privacy, advantage, utility = comparison.sentences
    assert comparison.sentence == f"{privacy} {advantage} {utility}"
    assert "; fewer in double.parquet, " in privacy
    assert all(text.count("(95 %: ") == 1 for text in comparison.sentences)
    assert comparison.remark == "The intervals hold together at 95 %."
    assert {(d.a_name, d.b_name) for d in comparison.differences} == {
        ("rr.parquet", "double.parquet")
    }
    epsilon = comparison.difference("mechanism.epsilon")
    assert (epsilon.kind, epsilon.value, epsilon.level) == ("exact", 0.0, None)


def test_all_intervals_share_one_error(done: Any) -> None:
    _, comparison, _ = done
    family = [d for d in comparison.differences if d.simultaneous]
    errors = [1 - d.level for d in family if d.level is not None]
    assert len(errors) == len(family) > 3
    assert sum(errors) == pytest.approx(1 - comparison.confidence)


def test_the_comparison_is_as_the_contract_says(done: Any) -> None:
    text, comparison, _ = done
    stored = json.loads(text)
    assert {"sentence", "releases", "differences"} <= set(stored)
    assert {"id", "a", "b", "value", "low", "high", "level"} <= set(stored["differences"][0])
    assert Comparison.from_json(text) == comparison
    assert (stored["differences"][0]["a"], stored["differences"][0]["b"]) == ("A", "B")
    shared = comparison.fingerprints[1].shared_rows
    assert shared is not None
    assert 0.4 < shared < 0.6


def test_the_page(done: Any) -> None:
    _, comparison, page = done
    assert len(page.encode()) < 300_000
    for word in ("<script", 'http-equiv="refresh"', "src=", "@import"):
        assert word not in page
    places = [page.index(f'id="{key}"') for key in (
        "decisions", "picture", "limits", "glossary", "appendix", "releases", "attacks", "loss",
        "renyi", "utility", "differences", "reproduce",
    )]  # fmt: skip
    assert places == sorted(places)
    assert all(text.partition(": ")[2] in page[: places[0]] for text in comparison.sentences)
    assert page.count("Publish: ") == len(comparison.releases)
    assert page[: places[3]].count("<figure ") == 1
    # What is not folded is read in a few minutes.
    shown = re.sub(r"(?s)<(style|svg|details).*?</\1>", " ", page)
    assert len(re.sub(r"<[^>]*>", " ", shown).split()) < 800
    assert page.index('<symbol id="mark-interval"') < page.index('href="#mark-interval"')
    assert "certified, 95" in page


def test_no_row_leaves_a_comparison(done: Any) -> None:
    text, comparison, page = done
    rows = comparison.releases[0].release.rows

    def longest(value: Any) -> int:
        if isinstance(value, dict):
            return max((longest(item) for item in value.values()), default=0)
        if isinstance(value, list):
            return max([len(value), *(longest(item) for item in value)])
        return 0

    assert longest(json.loads(text)) < rows / 2
    assert str(Path.cwd()) not in text + page


def test_stored_results_are_compared_unpaired(
    command: Command, files: Files, tmp_path: Path, done: Any
) -> None:
    stored = []
    for name, result in zip("ab", done[1].releases, strict=True):
        path = tmp_path / f"{name}.json"
        path.write_text(result.to_json())
        stored.append(path)
    _, comparison, _ = compared(command, tmp_path, *stored)
    own, paired = (
        comparison.difference("attack.best.accuracy"),
        done[1].difference("attack.best.accuracy"),
    )
    assert not own.paired
    assert own.value == pytest.approx(paired.value)
    assert own.high - own.low > paired.high - paired.low
    gain = comparison.difference("attack.best.advantage")
    assert not gain.paired
    assert not gain.simultaneous
    assert gain.level == pytest.approx(0.9)
    assert any("not paired" in note.text for note in comparison.notes)
    assert comparison.difference("test_accuracy") is None
    # One of the two as a release: still no rows to pair.
    _, mixed, _ = compared(
        command, tmp_path, stored[0], files.double, "--truth", files.truth, *FAST
    )
    assert not any(d.paired for d in mixed.differences)


def test_three_releases(command: Command, files: Files, tmp_path: Path) -> None:
    (_, out, _), comparison, page = compared(
        command, tmp_path, files.rr, files.double, files.weak, "--truth", files.truth, *FAST
    )
    assert {d.b for d in comparison.differences} == {"B", "C"}
    assert out.startswith("\n".join((comparison.access, *comparison.sentences)))
    weak = comparison.difference("attack.best.accuracy", "C")
    assert weak.low > 0
    assert "; more in weak.parquet" in comparison.sentences[0]
    assert "weak.parquet  " in out
    assert "attack." not in out
    # The table shows the bound behind each verdict, as the release's own page does.
    for result in comparison.releases:
        decides = next(c.observed for c in result.checks if c.id == "claimed-epsilon")
        assert decides is None or f"≥ {number(decides, 'down')}</span>" in page


def test_the_same_release_shows_no_change(command: Command, files: Files, tmp_path: Path) -> None:
    _, comparison, _ = compared(
        command, tmp_path, files.rr, files.rr, "--truth", files.truth, "--test", files.test, *FAST
    )
    for difference in comparison.differences:
        assert difference.low <= 0 <= difference.high
        assert difference.value == 0
    assert all("no difference shown" in text for text in comparison.sentences)
    assert [*comparison.names.values()] == ["rr.parquet (A)", "rr.parquet (B)"]


def test_without_true_labels(command: Command, files: Files, tmp_path: Path) -> None:
    _, comparison, _ = compared(command, tmp_path, files.rr, files.weak, *FAST)
    best = comparison.difference("attack.best.accuracy")
    assert best.kind == "estimated"
    assert not best.simultaneous
    assert best.level == pytest.approx(0.9)
    assert comparison.difference("mechanism.epsilon") is not None


def test_other_data_are_refused(command: Command, files: Files, tmp_path: Path) -> None:
    words = ("--html", tmp_path / "c.html", "--truth", files.truth, "--only", "mechanism")
    (tmp_path / "other").mkdir()
    fewer = make(tmp_path / "other", seed=2, rows=1000)
    line = one_line(command("compare", files.rr, fewer.rr, *words[:2]))
    assert "other/rr.parquet differs from " in line
    assert "1500 rows" in line
    assert "1000 rows" in line
    assert "classes" not in line  # How many there are may depend on a true label.
    shuffled = tmp_path / "shuffled.parquet"
    table = pq.read_table(files.weak)
    pq.write_table(table.take(np.random.default_rng(0).permutation(len(table))), shuffled)
    line = one_line(command("compare", files.rr, shuffled, *words))
    assert "the rows' features, or their order" in line
    assert not (tmp_path / "c.html").exists()
    status, _, _ = command(
        "compare", files.rr, shuffled, "--force", "--quiet", *words[:2], *words[4:]
    )
    assert status == 0
    page = (tmp_path / "c.html").read_text()
    assert "The data differ" in page
    assert "no row was paired" in page


def test_a_policy_decides_the_exit_status(
    command: Command, files: Files, tmp_path: Path, done: Any
) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text(
        'schema = 1\nextends = "ldpaudit:default"\n[claim]\n'
        'mechanism = "randomized-response"\nepsilon = 0.3\n'
    )
    quick = ("--only", "mechanism", "--only", "power")
    words = ("compare", files.rr, files.weak, "--truth", files.truth, *quick)
    outputs = ("--json", tmp_path / "c.json")
    assert command(*words, *outputs)[0] == 0
    assert command(*words, *outputs, "--policy", policy)[0] == 1
    assert command(*words, *outputs, "--policy", policy, "--exit-zero")[0] == 0
    stored = tmp_path / "a.json"
    stored.write_text(done[1].releases[0].to_json())
    line = one_line(command("compare", stored, stored, "--policy", policy, *outputs))
    assert "judged when it was made" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "2 to 26 releases"),
        (("{weak}", "--seed", "-1"), "must not be negative"),
        (("{weak}", "--threads", "0"), "at least 1"),
        (("{weak}", "--queries", "some"), "--queries"),
        (("{weak}", "--synthetic", "{synthetic}"), "none of these does"),
        (("{double}", "--synthetic", "{synthetic}", "--synthetic", "{rr}"), "Got 2 for 1"),
        (("{folder}/nowhere.parquet",), "nowhere.parquet"),
        (("{folder}/nowhere.json",), "nowhere.json"),
        (("{weak}", "--test", "{truth}"), "column 1"),
        (("{weak}", "--model", "forest"), "--model"),
    ],
)
def test_bad_requests(
    words: tuple[str, ...], said: str, command: Command, files: Files, tmp_path: Path
) -> None:
    filled = [word.format(**vars(files)) for word in words]
    line = one_line(command("compare", files.rr, *filled, "--html", tmp_path / "c.html"))
    assert said in line
    assert not list(tmp_path.iterdir())


def test_inputs_are_never_overwritten(command: Command, files: Files) -> None:
    before = files.test.read_bytes()
    words = ("compare", files.rr, files.weak, "--test", files.test, "--html", files.test)
    assert "not overwritten" in one_line(command(*words))
    assert files.test.read_bytes() == before


def test_a_test_label_that_is_no_class(command: Command, files: Files, tmp_path: Path) -> None:
    table = pq.read_table(files.test)
    strange = pa.array(["qzaaaakx", *table.column("label").to_pylist()[1:]])
    pq.write_table(table.set_column(3, "label", strange), tmp_path / "t.parquet")
    line = one_line(command("compare", files.rr, files.weak, "--test", tmp_path / "t.parquet"))
    assert "test table" in line
    assert "qzaaaakx" not in line


def test_a_class_that_is_hostile_stays_text(done: Any) -> None:
    from ldpaudit.reports.pages.comparison import render_comparison

    comparison: Comparison = done[1]
    prints = tuple(
        p.model_copy(update={"name": "<script>alert(1)</script>"}) for p in comparison.fingerprints
    )
    hostile = {"sentences": ("<b>x</b>\u202e",), "remark": "<b>y</b>"}
    changed = comparison.model_copy(update={"fingerprints": prints, **hostile})
    page = render_comparison(changed)
    assert "<script" not in page
    assert "<b>" not in page
    assert "\u202e" not in page


def test_options_of_run_for_all_releases(command: Command, files: Files, tmp_path: Path) -> None:
    """Slices, public rows and canaries are given once and hold of every release."""
    table = pq.read_table(files.rr)
    sliced = tmp_path / "rr.parquet"
    region = pa.array(["north", "south"] * (len(table) // 2))
    pq.write_table(table.append_column("region", region), sliced)
    weak = tmp_path / "weak.parquet"
    pq.write_table(pq.read_table(files.weak).append_column("region", region), weak)
    public = tmp_path / "public.parquet"
    own = pq.read_table(files.test)
    pq.write_table(own.append_column("region", pa.array(["north"] * len(own))), public)
    canaries = tmp_path / "canaries.csv"
    canaries.write_text("no,yes\n" + "0.5,0.5\n" * len(table))
    words = ("--slice", "region", "--public", public, "--canaries", canaries)
    more = ("--truth", files.truth, "--drop", "region", "--only", "observational", *FAST)
    _, comparison, page = compared(command, tmp_path, sliced, weak, *words, *more)
    for result in comparison.releases:
        assert result.estimate("attack.best.slice-1-2.accuracy") is not None
        ran = {record.id: record.status for record in result.audits}
        assert ran["observational"] == "ran"
    found = comparison.difference("attack.best.slice-1-1.accuracy")
    assert not found.simultaneous
    assert "column 1, slice 2" in page
    assert "region" not in comparison.run.command
    line = one_line(
        command("compare", sliced, weak, "--slice", "nowhere", "--html", tmp_path / "x.html")
    )
    assert "nowhere" in line
    short = tmp_path / "short.csv"
    short.write_text("no,yes\n0.5,0.5\n")
    line = one_line(
        command("compare", sliced, weak, *more, "--canaries", short, "--html", tmp_path / "x.html")
    )
    assert line.startswith("ldpaudit: rr.parquet: The canaries' table must have 1500 rows")


def test_what_goes_into_an_audit_needs_a_release(
    command: Command, tmp_path: Path, done: Any
) -> None:
    stored = tmp_path / "a.json"
    stored.write_text(done[1].releases[0].to_json())
    for name in ("--slice", "--public", "--public-posterior", "--canaries"):
        line = one_line(command("compare", stored, stored, name, "x0", "--json", tmp_path / "c"))
        assert name in line
