"""The command: bad input, a whole sweep, and one that is killed and goes on."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from extras.choose.sweep.conftest import ROWS, frame, sweep
from processes import heed_interrupts, refused

from ldpaudit.errors import GeneratorDivergedError

GRID = ("--lambda", "0.2,0.8")
FAST = ("--only", "label-inference", "--processes", "1")

BAD = {
    "no grid": (("--mechanism", "rr"), "one grid"),
    "two grids": (("--mechanism", "rr", *GRID, "--epsilon", "1"), "one grid"),
    "empty grid": (("--mechanism", "rr", "--lambda", ","), "1 to 1000"),
    "lambda zero": (("--mechanism", "rr", "--lambda", "0:0.5:3"), "every true label"),
    "double lambda zero": (
        ("--mechanism", "double-rr", "--generator", "mixture", "--lambda", "0,0.5"),
        "every true label",
    ),
    "double lambda one": (
        ("--mechanism", "double-rr", "--generator", "mixture", "--lambda", "0.5,1"),
        "nothing of the data",
    ),
    "unknown mechanism": (("--mechanism", "magic", *GRID), "is not known"),
    "mechanism with options": (("--mechanism", "gaussian-rr", *GRID), "cannot be swept"),
    "wrong parameter": (("--mechanism", "debiased-rr", *GRID), "swept by --epsilon"),
    "kinds mixed": (
        ("--mechanism", "rr", "--mechanism", "debiased-rr", "--epsilon", "1", "--labels", "0:1"),
        "sweep them apart",
    ),
    "no synthetic rows": (("--mechanism", "double-rr", *GRID), "--generator"),
    "both origins": (
        ("--mechanism", "double-rr", *GRID, "--generator", "gan", "--synthetic", "x"),
        "not both",
    ),
    "foreign option": (("--mechanism", "rr", *GRID, "--generator", "gan"), "does not belong"),
    "generator data": (("--mechanism", "rr", *GRID, "--generator-data", "x"), "--generator"),
    "public and synthetic": (
        ("--mechanism", "double-rr", *GRID, "--public", "x", "--synthetic", "y"),
        "does not go with --synthetic",
    ),
    "public for nothing": (("--mechanism", "rr", *GRID, "--public", "x"), "does not belong"),
    "label": (("--mechanism", "rr", *GRID, "--label", "labell"), "did you mean '"),
    "drop": (("--mechanism", "rr", *GRID, "--drop", "towm"), "did you mean '"),
    "share": (("--mechanism", "rr", *GRID, "--test-share", "1"), "(0, 1)"),
    "repeats": (("--mechanism", "rr", *GRID, "--repeats", "0"), "at least 1"),
    "memory": (("--mechanism", "rr", *GRID, "--memory", "0"), "at least 600 MiB"),
    "cluster": (("--mechanism", "rr", *GRID, "--cluster", "here"), "tls://host:8786"),
    "processes": (
        ("--mechanism", "rr", *GRID, "--cluster", "local:2", "--processes", "2"),
        "does not go with --cluster",
    ),
    "resume": (("--mechanism", "rr", *GRID, "--resume"), "--out"),
    "audit": (("--mechanism", "rr", *GRID, "--only", "magic"), "no audit"),
    "policy": (("--mechanism", "rr", *GRID, "--policy", "none.toml"), "none.toml"),
    "json": (("--mechanism", "rr", *GRID, "--json", "nowhere/x.json"), "does not exist"),
    "over the data": (("--mechanism", "rr", *GRID, "--json", "data.parquet"), "is an input"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, data, monkeypatch):
    monkeypatch.chdir(data.parent)
    words, expected = BAD[case]
    status, printed = sweep("data.parquet", *words)
    lines = [line for line in printed.splitlines() if not line.endswith("…")]
    assert (status, len(lines)) == (2, 1), printed
    assert expected in lines[0]
    assert [path.name for path in data.parent.iterdir()] == ["data.parquet"]


@pytest.mark.scanned
def test_a_column_that_tells_the_label_is_refused(tmp_path):
    made = frame()
    made.assign(copy=made["label"].str.upper()).to_parquet(tmp_path / "d.parquet")
    assert "Column 5 of 5 tells" in refused(
        "sweep", tmp_path / "d.parquet", "--mechanism", "rr", *GRID
    )


def test_a_policy_of_another_mechanism(data):
    policy = data.with_name("p.toml")
    policy.write_text(
        'schema = 1\nextends = "ldpaudit:default"\n'
        '[claim]\nmechanism = "double-rr"\nepsilon = 1.0\n'
    )
    assert "[claim]" in refused("sweep", data, "--mechanism", "rr", *GRID, "--policy", policy)


def test_double_rr_beside_rr_in_one_command(data):
    public, page = data.with_name("public.parquet"), data.with_name("s.html")
    frame().sample(frac=0.5, random_state=1).to_parquet(public, index=False)
    names = ("--mechanism", "rr", "--mechanism", "double-rr", "--lambda", "0.4")
    status, printed = sweep(data, *names, "--public", public, *FAST, "--html", page)
    assert status == 0, printed
    said = " ".join(printed.split()).partition("double-rr against randomized-response: ")[2]
    assert said.startswith("strongest attack: accuracy 0.")
    assert said.index("features alone") < said.index("test accuracy 0.") < said.index("best single")
    assert "double-rr against randomized-response" in page.read_text()


def test_a_sweep_and_the_same_one_resumed(data):
    out, policy = data.with_name("out"), data.with_name("p.toml")
    policy.write_text(
        'schema = 1\n[checks.label-inference-accuracy]\nlevel = "error"\nmax = 0.82\n'
    )
    words = (data, "--mechanism", "rr", *GRID, *FAST, "--policy", policy, "--out", out)
    status, printed = sweep(*words)
    assert status == 0, printed
    assert "randomized-response: λ = 0.8 (ε = 0.405), no violation found" in printed
    assert "less noise, λ = 0.2 (ε = 2.197): fail" in printed
    assert "nothing was released" in printed
    content = (out / "sweep.json").read_text()
    result = json.loads(content)
    assert [p["value"] for p in result["points"]] == [0.2, 0.8]
    for point in result["points"]:
        assert point["attack.best.accuracy"]["low"] < point["attack.best.accuracy"]["high"]
        assert point["test_accuracy"]["kind"] == "certified"
    assert result["least_noise"]["randomized-response"]["value"] == 0.8
    assert result["run"]["test_rows"] == ROWS // 5
    page = (out / "sweep.html").read_text()
    assert len(page) < 300_000
    assert "<script" not in page
    assert "λ = 0.8 (ε = 0.405)" in page
    # Without --resume it is left alone, and what is lost is made again.
    assert "is not empty" in sweep(*words)[1]
    (out / "points" / "randomized-response-lambda-0.8-1.json").unlink()
    status, printed = sweep(*words, "--resume", "--quiet")
    assert (status, (out / "sweep.json").read_text()) == (0, content), printed


def test_the_neighbour_search_is_an_option_of_a_sweep(data):
    """It reaches the audit of each draw, and a folder holds to it."""
    out = data.with_name("neighbours")
    fast = ("--only", "instance-loss", "--processes", "1", "--out", out)
    words = (data, "--mechanism", "rr", "--lambda", "0.5", *fast, "--neighbors", "10")
    status, printed = sweep(*words, "--queries", "40", "--metric", "raw")
    assert status == 0, printed
    point = json.loads((out / "points" / "randomized-response-lambda-0.5-1.json").read_text())
    estimates = {e["id"]: e for e in point["result"]["estimates"]}
    assert estimates["instance_loss.mean"]["n"] == 40
    assert sweep(*words, "--queries", "40", "--metric", "raw", "--resume")[0] == 0
    assert "another --metric" in refused("sweep", *words, "--queries", "40", "--resume")
    # An earlier version stored fewer options: the version is the reason then.
    manifest = out / "manifest.json"
    stored = json.loads(manifest.read_text())
    del stored["digests"]["metric"]
    manifest.write_text(json.dumps(stored))
    assert "another version of ldpaudit" in sweep(*words, "--queries", "40", "--resume")[1]


def test_a_generator_that_diverges_fails_its_points_only(data, monkeypatch, tmp_path):
    from ldpaudit.extras.release.synthesis.mixture import ClassMixtures

    def diverge(*_args, **_options):
        raise GeneratorDivergedError("Training the generator failed after 3 steps.")

    monkeypatch.setattr(ClassMixtures, "fit", diverge)
    out = tmp_path / "out"
    names = ("--mechanism", "rr", "--mechanism", "double-rr", "--generator", "mixture")
    status, printed = sweep(data, *names, "--lambda", "0.5", *FAST, "--out", out)
    assert status == 0, printed
    rr, double = json.loads((out / "sweep.json").read_text())["points"]
    assert rr["verdict"] != "failed"
    assert double["verdict"] == "failed"
    assert double["failed"] == ["Training the generator failed after 3 steps."]
    assert not (out / "generator.npz").exists()
    alone = ("--mechanism", "double-rr", "--generator", "mixture", "--lambda", "0.5")
    assert "No point could be measured" in refused(
        "sweep", data, *alone, *FAST, "--json", tmp_path / "x.json"
    )
    assert not (tmp_path / "x.json").exists()


def _start(data, out, *more):
    words = ("--mechanism", "rr", "--mechanism", "double-rr", "--generator", "mixture")
    grid = ("--lambda", "0.2:0.8:3", "--repeats", "2", "--out", out, "--processes", "2")
    sweep = [sys.executable, "-m", "ldpaudit", "sweep", data, *words, *grid, *FAST[:2], *more]
    return subprocess.Popen(
        [str(word) for word in sweep],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
        preexec_fn=heed_interrupts,
    )


@pytest.mark.validate
def test_a_killed_sweep_goes_on_to_the_same_result(data, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    process = _start(data, whole)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    killed = _start(data, broken)
    points = broken / "points"
    while killed.poll() is None and len(list(points.glob("*.json"))) < 4:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    done = {path.name: path.read_bytes() for path in points.glob("*.json")}
    assert 4 <= len(done) < 12
    assert not (broken / "sweep.json").exists()
    process = _start(data, broken, "--resume")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    # What was done was not done again, and the result is the same.
    assert all((points / name).read_bytes() == content for name, content in done.items())
    assert (broken / "sweep.json").read_text() == (whole / "sweep.json").read_text()


@pytest.mark.validate
def test_an_interruption_says_how_to_go_on(data, tmp_path):
    process = _start(data, tmp_path / "out")
    while process.poll() is None and not list(tmp_path.glob("out/points/*.json")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--resume goes on" in err.splitlines()[-1]
