"""``ldpaudit compare`` from files and from stored results: numbers, refusals, files, secrecy."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared_releases import CLASSES, make, people, written
from processes import called, refused

from ldpaudit import keywords
from ldpaudit.audits.alignment import UNRELATED
from ldpaudit.extras.compare.commands import COMPARE
from ldpaudit.extras.compare.comparison import Comparison
from ldpaudit.extras.compare.request import CompareRequest
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result.numbers import number

FAST = ("--only", "mechanism", "--only", "label-inference", "--threads", "1")


def compared(folder, *words):
    """Return what was printed, the stored comparison and the page."""
    outputs = ("--json", folder / "c.json", "--html", folder / "c.html")
    status, printed = called("compare", *words, *outputs)
    assert status == 0, printed
    comparison = Comparison.from_json((folder / "c.json").read_text())
    return printed, comparison, (folder / "c.html").read_text()


@pytest.fixture(scope="module")
def done(files, tmp_path_factory):
    """RR against double RR with everything, once for all tests."""
    from ldpaudit.extras.compare.page import render_comparison
    from ldpaudit.extras.compare.work import compare
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


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (None, 0),
        ("s.parquet", 1),
        (Path("s.parquet"), 1),
        (pd.DataFrame({"x": [1, 2], "label": [0, 1]}), 1),
        (["a.csv", pd.DataFrame({"x": [1]})], 2),
    ],
)
def test_synthetic_rows_are_one_table_or_several(given, count):
    request = keywords.made(
        CompareRequest, {"inputs": ("a.parquet", "b.parquet"), "synthetic": given}, "compare"
    )
    assert len(request.synthetic_tables) == count
    if count == 1:
        assert request.synthetic_tables[0] is given


def test_double_randomized_response_hides_more_and_costs_accuracy(done):
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


def test_all_intervals_share_one_error(done):
    _, comparison, _ = done
    family = [d for d in comparison.differences if d.simultaneous]
    errors = [1 - d.level for d in family if d.level is not None]
    assert len(errors) == len(family) > 3
    assert sum(errors) == pytest.approx(1 - comparison.confidence)


def test_the_comparison_is_as_the_contract_says(done):
    text, comparison, _ = done
    stored = json.loads(text)
    assert {"sentence", "releases", "differences"} <= set(stored)
    assert {"id", "a", "b", "value", "low", "high", "level"} <= set(stored["differences"][0])
    assert Comparison.from_json(text) == comparison
    assert (stored["differences"][0]["a"], stored["differences"][0]["b"]) == ("A", "B")
    shared = comparison.fingerprints[1].shared_rows
    assert 0.4 < shared < 0.6


def test_the_page(done):
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


def test_no_row_leaves_a_comparison(done):
    text, comparison, page = done
    rows = comparison.releases[0].release.rows

    def longest(value):
        if isinstance(value, dict):
            return max((longest(item) for item in value.values()), default=0)
        if isinstance(value, list):
            return max([len(value), *(longest(item) for item in value)])
        return 0

    assert longest(json.loads(text)) < rows / 2
    assert str(Path.cwd()) not in text + page


@pytest.fixture(scope="module")
def kept(done, tmp_path_factory):
    """The two results as files."""
    folder = tmp_path_factory.mktemp("kept")
    paths = [folder / f"{name}.json" for name in "ab"]
    for path, result in zip(paths, done[1].releases, strict=True):
        path.write_text(result.to_json())
    return paths


def test_stored_results_are_compared_unpaired(files, tmp_path, done, kept):
    _, comparison, _ = compared(tmp_path, *kept)
    own, paired = (one.difference("attack.best.accuracy") for one in (comparison, done[1]))
    assert not own.paired
    assert own.value == pytest.approx(paired.value)
    assert own.high - own.low > paired.high - paired.low
    gain = comparison.difference("attack.best.advantage")
    assert (gain.paired, gain.simultaneous, gain.level) == (False, False, pytest.approx(0.9))
    assert any("not paired" in note.text for note in comparison.notes)
    assert comparison.difference("test_accuracy") is None
    # One of the two as a release: still no rows to pair.
    _, mixed, _ = compared(tmp_path, kept[0], files.double, "--truth", files.truth, *FAST)
    assert not any(d.paired for d in mixed.differences)


def test_the_same_release_shows_no_change_and_a_third_more(files, tmp_path):
    words = (files.rr, files.rr, files.weak, "--truth", files.truth, "--test", files.test)
    out, comparison, page = compared(tmp_path, *words, *FAST)
    assert {d.b for d in comparison.differences} == {"B", "C"}
    assert "\n".join((comparison.access, *comparison.sentences)) in out
    for difference in (d for d in comparison.differences if d.b == "B"):
        assert difference.low <= 0 == difference.value <= difference.high
    assert [*comparison.names.values()] == ["rr.parquet (A)", "rr.parquet (B)", "weak.parquet"]
    assert all("no difference shown" in text for text in comparison.sentences)
    assert comparison.difference("attack.best.accuracy", "C").low > 0
    assert "; more in weak.parquet" in comparison.sentences[0]
    assert ("weak.parquet  " in out, "attack." in out) == (True, False)
    # The table shows the bound behind each verdict, as the release's own page does.
    for result in comparison.releases:
        decides = next(c.observed for c in result.checks if c.id == "claimed-epsilon")
        assert decides is None or f"≥ {number(decides, 'down')}</span>" in page


def test_without_true_labels(files, tmp_path):
    _, comparison, _ = compared(tmp_path, files.rr, files.weak, *FAST)
    best = comparison.difference("attack.best.accuracy")
    assert (best.kind, best.simultaneous) == ("estimated", False)
    assert best.level == pytest.approx(0.9)
    assert comparison.difference("mechanism.epsilon") is not None


def test_other_data_are_refused(files, tmp_path):
    page, truth = tmp_path / "c.html", ("--truth", files.truth, "--only", "mechanism")
    (tmp_path / "other").mkdir()
    fewer = make(tmp_path / "other", seed=2, rows=1000)
    line = refused("compare", files.rr, fewer.rr, "--html", page)
    assert re.search("other/rr.parquet differs from .*1,500 rows.*1,000 rows|1,000.*1,500", line)
    assert "classes" not in line  # How many there are may depend on a true label.
    shuffled = tmp_path / "shuffled.parquet"
    table = pq.read_table(files.weak)
    pq.write_table(table.take(np.random.default_rng(0).permutation(len(table))), shuffled)
    line = refused("compare", files.rr, shuffled, "--html", page, *truth, folder=tmp_path)
    assert "the rows' features, or their order" in line
    words = ("compare", files.rr, shuffled, "--force", "--quiet", "--html", page)
    assert called(*words, "--only", "mechanism")[0] == 0
    assert all(text in page.read_text() for text in ("The data differ", "no row was paired"))


def test_a_policy_decides_the_exit_status(files, tmp_path, kept):
    policy = tmp_path / "p.toml"
    policy.write_text(
        'schema = 1\nextends = "ldpaudit:default"\n[claim]\n'
        'mechanism = "randomized-response"\nepsilon = 0.3\n'
    )
    words = ("compare", files.rr, files.weak, "--truth", files.truth, "--only", "mechanism")
    words = (*words, "--json", tmp_path / "c.json", "--policy", policy)
    assert [called(*words)[0], called(*words, "--exit-zero")[0]] == [1, 0]
    line = refused("compare", *kept, *words[-2:], "--json", tmp_path / "c.json")
    assert "judged when it was made" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "2 to 26 releases"),
        ("{weak} --seed -1", "must not be negative"),
        ("{weak} --threads 0", "at least 1"),
        ("{weak} --queries some", "--queries"),
        ("{weak} --synthetic {synthetic}", "none of these does"),
        ("{double} --synthetic {synthetic} --synthetic {rr}", "Got 2 for 1"),
        ("{folder}/nowhere.parquet", "nowhere.parquet"),
        ("{folder}/nowhere.json", "nowhere.json"),
        ("{weak} --test {truth}", "column 1"),
        ("{weak} --model forest", "--model"),
        ("{weak} --test {test} --json {test}", "not overwritten"),
    ],
)
def test_bad_requests(words, said, files, tmp_path):
    given, page = words.format(**vars(files)).split(), tmp_path / "c.html"
    assert said in refused("compare", files.rr, *given, "--html", page, folder=files.folder)
    assert not page.exists()


def test_all_releases_have_one_file_of_true_labels(files):
    words = ("--truth", files.truth, "--truth", files.truth)
    assert "give --truth once" in refused("compare", files.rr, files.weak, *words)


def test_a_test_label_that_is_no_class(files, tmp_path):
    table = pq.read_table(files.test)
    strange = pa.array(["qzaaaakx", *table.column("label").to_pylist()[1:]])
    pq.write_table(table.set_column(3, "label", strange), tmp_path / "t.parquet")
    line = refused("compare", files.rr, files.weak, "--test", tmp_path / "t.parquet")
    assert ("test table" in line, "qzaaaakx" in line) == (True, False)


def test_a_class_that_is_hostile_stays_text(done):
    from ldpaudit.extras.compare.page import render_comparison

    comparison = done[1]
    prints = tuple(
        p.model_copy(update={"name": "<script>alert(1)</script>"}) for p in comparison.fingerprints
    )
    hostile = {"sentences": ("<b>x</b>\u202e",), "remark": "<b>y</b>"}
    changed = comparison.model_copy(update={"fingerprints": prints, **hostile})
    page = render_comparison(changed)
    assert "<script" not in page
    assert "<b>" not in page
    assert "\u202e" not in page


def test_options_of_run_for_all_releases(files, tmp_path):
    """Slices, public rows and canaries are given once and hold of every release."""

    def sliced(name):
        table, path = pq.read_table(getattr(files, name)), tmp_path / f"{name}.parquet"
        region = pa.array((["north", "south"] * len(table))[: len(table)])
        pq.write_table(table.append_column("region", region), path)
        return path

    rr, weak, public = map(sliced, ("rr", "weak", "test"))
    for name, rows in (("canaries", 1500), ("short", 1)):
        (tmp_path / f"{name}.csv").write_text("no,yes\n" + "0.5,0.5\n" * rows)
    more = ("--truth", files.truth, "--drop", "region", "--only", "observational", *FAST)
    words = ("--slice", "region", "--public", public, "--canaries", tmp_path / "canaries.csv")
    _, comparison, page = compared(tmp_path, rr, weak, *words, *more)
    for result in comparison.releases:
        assert result.estimate("attack.best.slice-1-2.accuracy") is not None
        assert {r.id: r.status for r in result.audits}["observational"] == "ran"
    assert not comparison.difference("attack.best.slice-1-1.accuracy").simultaneous
    assert ("column 1, slice 2" in page, "region" in comparison.run.command) == (True, False)
    # No value of the column, which is a cell of a feature.
    assert not [word for word in ("north", "south") if word in page + comparison.to_json()]
    assert "nowhere" in refused("compare", rr, weak, "--slice", "nowhere", folder=tmp_path)
    line = refused("compare", rr, weak, *more, "--canaries", tmp_path / "short.csv")
    assert line.startswith("ldpaudit: rr.parquet: The canaries' table must have 1,500 rows")


def test_what_goes_into_an_audit_needs_a_release(kept):
    for name in ("--slice", "--public", "--public-posterior", "--canaries"):
        assert name in refused("compare", *kept, name, "x0")


ALTERED = {
    "another order": lambda f, rng: f.sample(frac=1, random_state=3),
    "a number shifted": lambda f, _: f.assign(x0=f.x0 + 1),
    "a column shuffled": lambda f, rng: f.assign(x1=rng.permutation(f.x1)),
    "a category shuffled": lambda f, rng: f.assign(place=rng.permutation(f.place)),
    "all but one column shuffled": lambda f, rng: f.assign(
        **{name: f[name].iloc[rng.permutation(len(f))].to_numpy() for name in ("x1", "x2", "place")}
    ),
    "a column renamed": lambda f, _: f.rename(columns={"x2": "y2"}),
}


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.parametrize("claim", [(), ("--epsilon", "1")])
def test_altered_copies_are_refused_with_and_without_a_claim(tmp_path, how, claim):
    rng = np.random.default_rng(5)
    features, codes = people(400, rng)
    frame = pd.DataFrame({f"x{i}": v for i, v in enumerate(features.T)})
    frame = frame.assign(place=rng.choice(list("abcd"), 400), label=np.array(CLASSES)[codes])
    paths = tmp_path / "a.parquet", tmp_path / "b.parquet"
    frame.to_parquet(paths[0], index=False)
    ALTERED[how](frame, rng).to_parquet(paths[1], index=False)
    line = refused("compare", *paths, *claim, "--only", "mechanism", folder=tmp_path)
    assert "feature" in line


def test_true_labels_that_reveal_nothing_are_said_without_a_claim(tmp_path):
    """An honest one has a warning in one of twenty draws; this one is far from it."""
    rng = np.random.default_rng(6)
    features, codes = people(600, rng)
    drawn = RandomizedResponse.from_epsilon(CLASSES, 1.0).sample(codes, rng)
    names = ("a.parquet", "b.parquet", "truth.parquet", "other.parquet")
    labels = (drawn, drawn, codes, rng.permutation(codes))
    a, b, truth, other = (
        written(tmp_path / name, features if place < 2 else None, these, None)
        for place, (name, these) in enumerate(zip(names, labels, strict=True))
    )
    for given, warned in ((truth, False), (other, True)):
        _, comparison, _ = compared(tmp_path, a, b, "--truth", given, "--only", "mechanism")
        assert [UNRELATED in note.text for note in comparison.notes].count(True) == 2 * warned


def test_the_form_has_the_version_that_the_command_states():
    assert COMPARE.stored is not None
    assert COMPARE.stored().model_fields["schema_version"].default == COMPARE.schema_version


def test_releases_of_different_columns_are_named_with_their_columns(tmp_path):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"x": rng.normal(size=300), "a": rng.choice(["no", "yes"], 300)})
    table["b"] = rng.choice(["no", "yes"], 300)
    table.to_csv(tmp_path / "data.csv", index=False)
    for name in ("a", "b"):
        words = ("--label", f"{name}:rr:epsilon=1", "-o", tmp_path / f"{name}.csv")
        assert called("privatize", tmp_path / "data.csv", *words)[0] == 0
    files = (tmp_path / "a.csv", tmp_path / "b.csv", "--only", "mechanism")
    line = refused("compare", *files)
    assert "b.csv differs from a.csv in the private column (column 3 instead of column 2)" in line
    # What cannot be read of one of them says of which.
    assert ": b.csv: 'a' is none of the private columns" in refused(
        "compare", *files, "--label", "a"
    )


@pytest.mark.parametrize("same", [True, False])
def test_labels_of_other_values_are_of_other_data(same, tmp_path):
    rng = np.random.default_rng(2)
    x, truth = rng.normal(size=300), rng.integers(0, 2, 300).astype(np.int32)
    for name, classes in (("one", ("no", "yes")), ("two", ("no", "yes" if same else "si"))):
        claim = RandomizedResponse.from_epsilon(classes, 1.0)
        label = np.array(classes)[claim.sample(truth, rng)]
        pd.DataFrame({"x": x, "label": label}).to_csv(tmp_path / f"{name}.csv", index=False)
    words = (tmp_path / "one.csv", tmp_path / "two.csv", "--mechanism", "rr", "--epsilon", "1")
    if same:
        assert called("compare", *words, "--only", "mechanism")[0] == 0
    else:
        line = refused("compare", *words, "--only", "mechanism")
        assert "differs from one.csv in the values of the label" in line
