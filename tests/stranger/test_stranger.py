"""Parts of another package go through every command, with no other file touched."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from installing import forget

from ldpaudit import doors
from ldpaudit.extras.receipt import drawing
from ldpaudit.mechanisms import registry
from ldpaudit.mechanisms.channel import Channel

HERE = Path(__file__).parent
EPSILON = 1.5
ROWS = 500
EVEN = np.full((3, 3), 1 / 3)
WITHOUT_ATTACKS = ("--skip", "label-inference", "--skip", "renyi", "--skip", "seeds")


@pytest.fixture
def released(command, data, tmp_path):
    def release(name):
        path = tmp_path / f"{name}.parquet"
        status, said = command(
            *("privatize", data, "-o", path, "--mechanism", name, "--epsilon", EPSILON),
            *("--experimental", "--seed", 3),
        )
        assert (status, name.replace("-", " ") in said) == (0, True), said
        return path

    return release


def _result(path):
    return json.loads(path.with_suffix(".audit.json").read_text())


def _ids(result):
    return {estimate["id"] for estimate in result["estimates"]}


@pytest.mark.parametrize("name", ["cyclic-response", "cautious-response"])
def test_a_release_declares_it(released, name):
    declared = json.loads(pq.read_schema(released(name)).metadata[b"ldpaudit"])["mechanism"]
    assert (declared["name"], declared["epsilon"]) == (name, EPSILON)


def test_a_channel_is_drawn_from_the_key(command, data):
    release, secret = data.with_name("r.parquet"), data.with_name("t.parquet")
    words = ("--mechanism", "cyclic-response", "--epsilon", EPSILON, "--secret", secret)
    assert command("privatize", data, "-o", release, *words)[0] == 0
    status, said = command("verify", release, "--truth", secret)
    assert (status, "Proven: all 500 released labels" in said) == (0, True), said
    # A package that draws otherwise than it did accuses nobody.
    module = sys.modules["strange_responses"]
    other = replace(module.CYCLIC, channel=lambda classes, stated: Channel(EVEN, classes, classes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CYCLIC", other)
        forget()
        status, said = command("verify", release, "--truth", secret)
    forget()
    assert (status, "package draws other labels" in said) == (3, True), said


def test_code_of_others_that_draws_proves_no_claim(command, data, monkeypatch):
    """What is drawn again says which code drew, and not that it keeps to its channel."""
    release, secret = data.with_name("r.parquet"), data.with_name("t.parquet")
    monkeypatch.setattr(drawing, "_ours", lambda _: False)
    words = ("--mechanism", "cyclic-response", "--epsilon", EPSILON, "--secret", secret)
    assert command("privatize", data, "-o", release, *words)[0] == 0
    status, said = command("verify", release, "--truth", secret)
    assert (status, "only tests can say whether that code keeps its claim" in said) == (3, True)
    _, said = command("run", release, "--truth", secret, "--only", "mechanism")
    assert "Proven" not in said
    page = data.with_name("r.audit.html").read_text(encoding="utf-8")
    assert "The noise is tested as ever" in page


def test_what_draws_from_features_has_no_receipt(command, data):
    release, secret = data.with_name("r.parquet"), data.with_name("t.parquet")
    words = ("--mechanism", "cautious-response", "--epsilon", EPSILON, "--secret", secret)
    status, said = command("privatize", data, "-o", release, *words)
    assert status == 0, said
    (line,) = [one for one in said.splitlines() if "No receipt" in one]
    assert "draws from features" in line
    assert "key of the noise" not in said
    assert b"receipt" not in pq.read_schema(release).metadata[b"ldpaudit"]
    assert b"ldpaudit" not in (pq.read_schema(secret).metadata or {})
    status, said = command("verify", release, "--truth", secret)
    assert (status, "no receipt" in said) == (2, True), said


@pytest.mark.parametrize("truth", [True, False])
def test_run(command, released, data, truth):
    path = released("cyclic-response")
    known = ("--truth", data) if truth else ()
    status, said = command("run", path, *known, *(() if truth else WITHOUT_ATTACKS))
    assert status in (0, 3), said
    result = _result(path)
    assert result["mechanism"]["description"].startswith("cyclic response on 3 labels")
    (epsilon,) = (e["value"] for e in result["estimates"] if e["id"] == "mechanism.epsilon")
    assert epsilon == pytest.approx(EPSILON)
    assert ("mechanism.epsilon_lower" in _ids(result)) is truth
    assert "cyclic response on 3 labels" in path.with_suffix(".audit.html").read_text()


def test_a_false_claim_is_refuted(command, released, data):
    path = released("cyclic-response")
    table = pq.read_table(path)
    content = json.loads(table.schema.metadata[b"ldpaudit"])
    content["mechanism"]["epsilon"] = 0.3
    pq.write_table(table.replace_schema_metadata({"ldpaudit": json.dumps(content)}), path)
    only = ("--only", "mechanism", "--only", "power")
    status, said = command("run", path, "--truth", data, *only)
    assert status == 1, said


@pytest.mark.parametrize("truth", [True, False])
def test_bounds_that_need_one_channel_are_withheld(command, released, data, truth):
    path = released("cautious-response")
    known = ("--truth", data) if truth else ()
    status, said = command("run", path, *known, *WITHOUT_ATTACKS)
    assert status == 3, said
    result = _result(path)
    withheld = {"mechanism.epsilon_lower", "release_only.epsilon_lower"}
    assert _ids(result).isdisjoint({*withheld, "power.min_detectable_excess"})
    reasons = {audit["id"]: audit["reason"] for audit in result["audits"]}
    assert "uses the features" in reasons["power"]


def test_compare(command, released, data):
    pair = [released("cyclic-response"), released("cautious-response")]
    out = data.with_name("compared.json")
    page = out.with_suffix(".html")
    words = ("--truth", data, "--json", out, "--html", page)
    status, said = command("compare", *pair, *words)
    assert status == 0, said
    for name in ("cautious response", "cyclic response"):
        assert f"{name} on 3 labels" in out.read_text()
    assert page.is_file()


def test_sweep(command, data, tmp_path):
    out = tmp_path / "sweep.json"
    mechanisms = ("--mechanism", "cyclic-response", "--mechanism", "cautious-response")
    status, said = command(
        *("sweep", data, "--label", "label", *mechanisms, "--epsilon", "0.5,2"),
        *("--json", out, "--html", out.with_suffix(".html"), "--seed", 1, "--processes", 1),
        *("--only", "mechanism", "--only", "label-inference"),
    )
    assert status == 0, said
    points = json.loads(out.read_text())["points"]
    assert [p["mechanism"] for p in points] == 2 * ["cyclic-response"] + 2 * ["cautious-response"]


def test_describe_and_compose(command, tmp_path):
    out, classes = tmp_path / "described.json", ("--classes", "a,b,c,d")
    amount = ("--epsilon", EPSILON)
    for name in ("cyclic-response", "cautious-response"):
        words = (*amount, *classes, "--json", out, "--html", out.with_suffix(".html"))
        status, said = command("mechanism", "describe", name, *words)
        assert status == 0, said
        assert json.loads(out.read_text())["epsilon"] == pytest.approx(EPSILON)
    first = "cyclic-response:epsilon=1"
    status, said = command(
        "mechanism", "compose", first, "cautious-response:epsilon=0.5", *classes, "--json", out
    )
    assert status == 0, said
    assert json.loads(out.read_text())["epsilon"] == pytest.approx(1.5, rel=0.01)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("privatize", "DATA", "-o", "OUT", "--lambda", 0.3), "--lambda does not belong"),
        (("privatize", "DATA", "-o", "OUT"), "must be given --epsilon"),
        (("mechanism", "describe", "--epsilon", 1, "--classes", "a,b", "--set", "q=1"), "'q'"),
        (("mechanism", "describe", "--lambda", 0.5, "--classes", "a,b"), "it has no λ"),
        (("sweep", "DATA", "--label", "label", "--lambda", "0.1,0.2"), "swept by --epsilon"),
    ],
)
def test_mistakes_are_one_line(command, data, words, part):
    places = {"DATA": data, "OUT": data.with_name("out.parquet")}
    filled = [places.get(word, word) for word in words]
    place = 2 if words[0] == "mechanism" else len(filled)
    named = ["cyclic-response"] if words[0] == "mechanism" else ["--mechanism", "cyclic-response"]
    status, said = command(*filled[:place], *named, *filled[place:])
    assert (status, part in said) == (2, True), said
    assert len(said.strip().splitlines()) == 1


def test_a_plug_in_replaces_no_built_in(installed):
    entry = installed / "strange_responses-1.0.dist-info" / "entry_points.txt"
    kept = entry.read_text()
    entry.write_text(kept + "[ldpaudit.mechanisms]\ndouble-rr = strange_responses:CYCLIC\n")
    forget()
    try:
        assert registry.family("double-rr").traits.features == "partly synthetic"
    finally:
        entry.write_text(kept)
        forget()


def test_a_broken_plug_in_stops_nothing_else(installed, command):
    entry = installed / "strange_responses-1.0.dist-info" / "entry_points.txt"
    kept = entry.read_text()
    more = "bad = no_such_module:X\nmasked = strange_responses:CYCLIC\n"
    entry.write_text(f"{kept}[ldpaudit.mechanisms]\n{more}")
    forget()
    try:
        words = ("mechanism", "describe", "rr", "--epsilon", 1, "--classes", "a,b")
        assert command(*words)[0] == 0
        assert "laplace" in registry.applicable()
        for name, part in (("bad", "cannot be loaded"), ("masked", "calls itself")):
            status, said = command("mechanism", "describe", name, *words[3:])
            assert (status, f"The plug-in {name!r}" in said) == (2, True), said
            assert part in said
    finally:
        entry.write_text(kept)
        forget()


MECHANISM = ("--mechanism", "randomized-response", "--epsilon", 1.0)
QUICK = ("--only", "mechanism", "--only", "first-label")


def test_every_part_takes_part_in_a_run(command, pipe):
    report = pipe.with_suffix(".txt")
    status, said = command(
        *("run", pipe, "--truth", pipe.with_name("truth.pipe"), *MECHANISM, *QUICK),
        *("--only", "label-inference", "--format", f"check-lines={report}"),
    )
    assert status in (0, 3), said
    result = _result(pipe.with_suffix(".pipe.parquet"))
    parts = {(one["kind"], one["name"]): one for one in result["run"]["plugins"]}
    named = {("reader", "pipes"), ("audit", "first-label"), ("attack", "first-column")}
    assert named <= parts.keys()
    assert {(one["package"], one["version"]) for one in parts.values()} == {
        ("strange-responses", "1.0")
    }
    assert {"first-label.share", "attack.first-column.accuracy"} <= _ids(result)
    lines = dict(line.split("\t") for line in report.read_text().splitlines())
    assert lines["exit status"] == str(status)
    assert lines["claimed-epsilon"] in ("pass", "inconclusive")
    assert report.stat().st_mode & 0o777 == 0o600
    # A stored result, which names the reader, is read again.
    stored, again = pipe.with_suffix(".pipe.audit.json"), pipe.with_suffix(".again")
    words = ("--format", f"check-lines={again}", "--profile", "internal")
    assert command("report", stored, *words)[0] == 0
    assert again.read_text().splitlines()[0] == report.read_text().splitlines()[0]


def test_a_reader_writes_too(command, data, pipe):
    new = pipe.with_name("new.pipe")
    status, said = command("privatize", data, "-o", new, *MECHANISM)
    assert status == 0, said
    original, written = pd.read_parquet(data), pd.read_csv(new, sep="|")
    assert [*written.columns] == [*original.columns]
    assert (written.drop(columns="label") == original.drop(columns="label")).all(axis=None)
    status, said = command("declare", new)
    assert (status, "declares" in said, "'label'" in said) == (0, True, True), said
    before = {*pipe.parent.iterdir()}
    status, said = command("privatize", data, "-o", new, *MECHANISM)
    assert (status, "--overwrite" in said) == (2, True), said
    assert {*pipe.parent.iterdir()} == before
    words = ("--mechanism", "rr", "--epsilon", 1, "--label", "label")
    assert command("declare", pipe, *words)[0] == 0
    status, said = command("declare", pipe)
    assert (status, "declares randomized response" in said) == (0, True), said


def test_a_file_is_read_a_piece_at_a_time(command, pipe):
    at_once, results = [], []
    for name in ("released.pipe", "released.pipes"):
        release = pipe.with_name(name)
        release.write_bytes(pipe.read_bytes())
        status, said = command(
            *("run", release, "--truth", pipe.with_name("truth.pipe"), *MECHANISM, *QUICK)
        )
        assert status in (0, 3), said
        results.append(_result(pipe.with_name(f"{name}.parquet")))
        at_once.append(results[-1]["estimates"])
    assert at_once[0] == at_once[1]
    named = {(one["kind"], one["name"]) for one in results[1]["run"]["plugins"]}
    assert ("reader", "long-pipes") in named


def reports_of(codes, epsilon, size, rng):
    """Draw a report of Hadamard response on three labels for each code, by rejection."""
    found = np.full(len(codes), -1)
    wanted = rng.random(len(codes)) < 1 / (1 + math.exp(-epsilon))
    while (left := np.flatnonzero(found < 0)).size:
        drawn = rng.integers(size, size=len(left))
        odd = np.array([bin(one).count("1") % 2 for one in (codes[left] + 1) & drawn])
        found[left] = np.where((odd == 0) == wanted[left], drawn, -1)
    return [[int(one)] for one in found]


@pytest.mark.parametrize(("true_epsilon", "fails"), [(1.0, False), (2.0, True)])
def test_reports_are_audited(command, tmp_path, true_epsilon, fails):
    # Of an honest claim the bound is wrong with a probability of 5 %; the seed is a usual one.
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 3, 3_000)
    names = np.array(["no", "perhaps", "yes"])[codes]
    reports = reports_of(codes, true_epsilon, 4, rng)
    x = rng.standard_normal(len(codes))
    stated = {"classes": ["no", "perhaps", "yes"], "epsilon": 1.0}
    claim = doors.Declaration("hadamard-reports", stated)
    released = doors.declare(pa.table({"x": x, "label": reports}), claim, "label")
    pq.write_table(released, tmp_path / "r.parquet")
    pq.write_table(pa.table({"label": names}), tmp_path / "t.parquet")
    words = ("--truth", tmp_path / "t.parquet", "--only", "mechanism")
    status, said = command("run", tmp_path / "r.parquet", *words)
    assert status in (0, 1, 3), said
    result = _result(tmp_path / "r.parquet")
    (found,) = (one for one in result["estimates"] if one["id"] == "mechanism.epsilon_lower")
    assert (status == 1) == fails, said
    assert (found["value"] > 1) == fails
    assert 0.5 < found["value"] <= true_epsilon
    (claimed,) = (one for one in result["estimates"] if one["id"] == "mechanism.epsilon")
    assert claimed["value"] == pytest.approx(1.0)


def test_a_command(command, pipe):
    out = pipe.with_suffix(".json")
    status, said = command("shares", pipe, "--json", out)
    assert status == 0, said
    shares = json.loads(out.read_text())["shares"]
    assert shares.keys() == {"no", "perhaps", "yes"}
    assert sum(shares.values()) == pytest.approx(1)
    assert "shares" in command("--help")[1]
    assert "Count how often" in command("shares", "--help")[1]
    assert '"shares"' in command("report", "shares", "--schema")[1]
    assert "--install-completion" not in command("shares", "--help")[1]
    status, said = command("shares", pipe.with_name("nowhere.parquet"))
    assert (status, "There is no file 'nowhere.parquet'." in said) == (2, True), said


GENERATED = ("--mechanism", "double-rr", "--lambda", 0.5, "--generator", "shuffled-columns")


def test_privatize_with_a_generator(command, data, tmp_path):
    out, sample = tmp_path / "double.parquet", tmp_path / "sample.parquet"
    words = ("--experimental", "--seed", 5, "--synthetic-out", sample)
    status, said = command("privatize", data, "-o", out, *GENERATED, *words)
    assert status == 0, said
    released, true = pd.read_parquet(out), pd.read_parquet(data)
    assert 0.4 < (released.x != true.x).mean() < 0.6
    assert set(released.x) <= set(true.x)
    declared = json.loads(pq.read_schema(out).metadata[b"ldpaudit"])["provenance"]["generator"]
    known = {"name": "shuffled-columns", "package": "strange-responses", "version": "1.0"}
    assert declared.items() >= {**known, "size": ROWS, "trained_on": "private"}.items()
    assert len(pd.read_parquet(sample)) == ROWS


def test_sweep_with_a_generator(command, data, tmp_path):
    out = tmp_path / "sweep.json"
    status, said = command(
        *("sweep", data, "--label", "label", "--mechanism", "double-rr", "--lambda", "0.3,0.6"),
        *("--generator", "shuffled-columns", "--json", out, "--seed", 1, "--processes", 1),
        *("--only", "mechanism"),
    )
    assert status == 0, said
    assert len(json.loads(out.read_text())["points"]) == 2


def test_every_part_is_written_with_the_door_alone():
    for file in HERE.glob("*.py"):
        if file.name.startswith(("test_", "conftest")):
            continue
        ours = [
            line.split()[1]
            for line in file.read_text().splitlines()
            if line.startswith(("from ldpaudit", "import ldpaudit"))
        ]
        assert ours == ["ldpaudit.doors"], file
    assert len(doors.__all__) <= 80
