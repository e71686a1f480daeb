"""From a file to a verdict and a report: the commands of the core, without any extra.

``released/`` holds 300 rows that were released by randomized response at ε = 1, with the key of
their noise; the receipt is left out here.
"""

import json
import shutil
from pathlib import Path

import pytest
from processes import called, refused

RELEASED = Path(__file__).parent / "released"
FAST = ("--only", "mechanism", "--only", "power", "--threads", "1")
POLICY = """schema = 1
[claim]
epsilon = {}
[checks.claimed-epsilon]
level = "error"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for path in RELEASED.iterdir():
        shutil.copy(path, tmp_path)
    declaration = tmp_path / "release.csv.ldpaudit.json"
    content = json.loads(declaration.read_text())
    del content["receipt"]
    declaration.write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_judges_by_a_policy_and_report_says_the_same(folder):
    for most, status, verdict in ((2.0, 0, "pass"), (0.5, 1, "fail")):
        Path("policy.toml").write_text(POLICY.format(most))
        words = ("--truth", "truth.csv", "--policy", "policy.toml", "--json", "a.json")
        ended, printed = called("run", "release.csv", *words, *FAST)
        assert ended == status, printed
        stored = json.loads(Path("a.json").read_text())
        assert stored["verdict"] == verdict
        (epsilon,) = (one for one in stored["estimates"] if one["id"] == "mechanism.epsilon")
        assert epsilon["value"] == pytest.approx(1.0)
        assert called("report", "a.json", "--html", "a.html")[0] == 0
        assert stored["sentence"][:40] in " ".join(printed.split())
        answer = "yes" if status == 0 else "no"
        assert f"Publish: {answer} – audit of release.csv" in Path("a.html").read_text()


def test_a_policy_is_checked(folder):
    Path("policy.toml").write_text(POLICY.format(2.0))
    assert called("policy", "check", "policy.toml")[0] == 0
    Path("policy.toml").write_text(POLICY.format('"two"'))
    assert "epsilon" in refused("policy", "check", "policy.toml")


def test_what_is_declared_is_what_is_audited(folder):
    Path("release.csv.ldpaudit.json").unlink()
    words = ("--label", "diagnosis", "--mechanism", "rr", "--epsilon", "0.25")
    status, printed = called("declare", "release.csv", *words)
    assert status == 0, printed
    assert called("run", "release.csv", "--truth", "truth.csv", *FAST)[0] == 1
    stored = json.loads(Path("release.audit.json").read_text())
    (epsilon,) = (one for one in stored["estimates"] if one["id"] == "mechanism.epsilon")
    assert (stored["verdict"], epsilon["value"]) == ("fail", pytest.approx(0.25))
