"""An installation without the rare kinds: what needs one of them gets a line, all else works."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from processes import called, refused

from ldpaudit import cli, plugins
from ldpaudit.commands import registered
from ldpaudit.mechanisms import registry

KINDS = "ldpaudit.extras.kinds"
CLAIM = ("--mechanism", "rr", "--epsilon", "1")
MORE = ("instance-loss", "label-inference", "numeric-inference", "renyi", "seeds", "power")


@pytest.fixture(autouse=True)
def _without_kinds(monkeypatch):
    """Take the rare kinds out, where they are there."""
    present = plugins._present
    monkeypatch.setattr(plugins, "_present", lambda m: not m.startswith(KINDS) and present(m))
    forget()
    yield
    monkeypatch.undo()
    forget()


def forget():
    registry.family.cache_clear()
    registry._entry_points.cache_clear()


@pytest.fixture(autouse=True)
def _files(monkeypatch, tmp_path):
    """Leave a release and its true labels where the commands run."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 600)
    released = np.where(rng.random(600) < 0.731, truth, 1 - truth)
    table = pd.DataFrame({"x": rng.normal(size=600) + truth, "label": released})
    table.to_csv("release.csv", index=False)
    pd.DataFrame({"label": truth}).to_csv("truth.csv", index=False)


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (("--mechanism", "double-rr", "--lambda", ".3"), "lacks the mechanism 'double-rr'"),
        (("--mechanism", "frequency-oracle"), "lacks the mechanism 'frequency-oracle'"),
        ((*CLAIM, "--only", "observational"), "lacks the audit 'observational'"),
        ((*CLAIM, "--skip", "aggregates"), "lacks the audit 'aggregates'"),
        ((*CLAIM, "--sarif", "a.sarif"), "lacks the report format 'sarif'"),
        ((*CLAIM, "--format", "markdown=a.md"), "has an option of its own"),
    ],
)
def test_a_claim_an_audit_or_a_format_gets_a_line(words, lacks, tmp_path):
    assert lacks in refused("run", "release.csv", *words, folder=tmp_path)


@pytest.mark.parametrize(
    "name", ["r.orc", "r.jsonl", "r.ndjson.zip", "r.xlsx", "r.npz", "r.dta", "r.sav", "r.svm"]
)
def test_a_file_gets_a_line(name, tmp_path):
    Path(name).write_bytes(b"something")
    said = refused("run", name, *CLAIM, folder=tmp_path)
    assert f"This installation lacks what reads '{name}'; install ldpaudit again" in said


def test_everything_else_works():
    words = ("--truth", "truth.csv", "--json", "a.json", "--html", "a.html", "--threads", "1")
    only = [word for name in ("assumptions", "mechanism", *MORE) for word in ("--only", name)]
    status, printed = called("run", "release.csv", *CLAIM, *words, *only)
    assert status in (0, 3), printed
    stored = json.loads(Path("a.json").read_text())
    ran = [one["id"] for one in stored["audits"]]
    assert ran == ["assumptions", "mechanism", *MORE]
    assert "power.min_detectable_excess" in {one["id"] for one in stored["estimates"]}
    assert not stored["run"]["plugins"]


def test_the_audits_that_are_there_run_by_themselves():
    skipped = [word for name in MORE for word in ("--skip", name)]
    status, printed = called("run", "release.csv", *CLAIM, *skipped, "--json", "a.json")
    assert status in (0, 3), printed
    ran = [one["id"] for one in json.loads(Path("a.json").read_text())["audits"]]
    assert ran == ["assumptions", "mechanism"]


@pytest.fixture
def _commands_that_lack_a_part(monkeypatch, tmp_path_factory):
    """Have our registered commands need a part that is not there."""
    site = tmp_path_factory.mktemp("site")
    site.joinpath("in_need.py").write_text("import ldpaudit.extras.taken_out\n")
    monkeypatch.syspath_prepend(site)
    names = ("verify", "mechanism.describe")
    found = {name: EntryPoint(name, "in_need:X", "ldpaudit.commands") for name in names}
    monkeypatch.setattr(registered, "ours", lambda _: found)
    made = registered.registered, cli._program, cli._commands
    for one in made:
        one.cache_clear()
    yield
    for one in made:
        one.cache_clear()


@pytest.mark.usefixtures("_commands_that_lack_a_part")
def test_a_command_that_needs_what_was_taken_out_gets_a_line(tmp_path):
    for word in ("verify", "mechanism"):
        said = refused(word, "release.csv", folder=tmp_path)
        assert f"This installation lacks the command '{word}'; install ldpaudit again." in said
    assert "did you mean 'run'?" in refused("audit", "release.csv", folder=tmp_path)
    assert "No such command 'predict'." in refused("predict", folder=tmp_path)
    status, printed = called("--help")
    assert (status, "  verify " in printed, "  declare " in printed) == (0, False, True)


@pytest.mark.usefixtures("_commands_that_lack_a_part")
def test_a_result_of_a_command_that_was_taken_out_gets_a_line(tmp_path):
    Path("stored.json").write_text('{"schema_version": "1.0", "sentence": "SECRET"}')
    said = refused("report", "stored.json", folder=tmp_path)
    assert "'stored.json' is no result of ldpaudit run" in said
    assert "this installation lacks (" in said
    assert " verify); install ldpaudit again." in said
    said = refused("report", "verify", "--schema", folder=tmp_path)
    assert "This installation lacks the command 'verify'; install ldpaudit again." in said


def test_a_module_that_was_taken_out_is_named():
    error = ModuleNotFoundError("No module", name="ldpaudit.extras.receipt")
    line = "This installation lacks 'ldpaudit.extras.receipt', which this needs; install"
    assert line in cli._one_line(error)
    other = cli._one_line(ModuleNotFoundError("No module", name="somewhere"))
    assert "Internal fault (ModuleNotFoundError)" in other
