"""Columns from before the noise on every surface: options, environment, policy, files, pages."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from processes import called, refused
from releases import table, written

import ldpaudit
from ldpaudit.judging.policy import load_policy
from ldpaudit.release import Release
from ldpaudit.result import BeforeNoise

FAST = ("--only", "mechanism")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return written(tmp_path, rows=600)


def known(path="release.audit.json"):
    """Return which columns a stored result knows."""
    return json.loads(Path(path).read_text(encoding="utf-8"))["release"]["before"]


def policy(folder, text):
    path = folder / "policy.toml"
    path.write_text(f'schema = 1\nextends = "ldpaudit:default"\n[release]\nbefore = {text}\n')
    return path


def test_options_environment_and_policy_name_them(files, tmp_path, monkeypatch):
    release, truth = files
    run = ("run", release, "--truth", truth, *FAST)
    assert called(*run)[0] in (0, 3)
    nobody = {"truth": [], "named": [], "declared": [], "unknown": ["x0", "x1", "x2", "town"]}
    assert known() == nobody
    called(*run, "--before", "x1", "--before", "town")
    assert (known()["named"], known()["unknown"]) == (["x1", "town"], ["x0", "x2"])
    called(*run, "--before", "x1", "--policy", policy(tmp_path, '["x2"]'))
    assert known()["named"] == ["x1", "x2"]
    called(*run, "--policy", policy(tmp_path, '["*"]'))
    assert known()["unknown"] == []
    monkeypatch.setenv("LDPAUDIT_BEFORE", "x0\ntown")
    called(*run)
    assert known()["named"] == ["x0", "town"]


def test_what_the_pages_show(files):
    release, truth = files
    full = pq.read_table(release).select(["x0", "town"])
    pq.write_table(full.append_column("label", pq.read_table(truth)["label"]), truth)
    called("run", release, "--truth", truth, *FAST, "--before", "x1")
    page = Path("release.audit.html").read_text(encoding="utf-8")
    words = "3 of 4 columns known (2 as in the true table, 1 named); not known: x2"
    assert words in page.replace("</dd>", "")
    assert "From before the noise" in page
    public = called("report", "release.audit.json", "--json", "p.json", "--profile", "public")
    assert public[0] == 0
    shared = Path("p.json").read_text(encoding="utf-8")
    assert json.loads(shared)["released"]["release"]["before"] is None
    assert "town" not in shared


@pytest.mark.parametrize("name", ["x9", "label"])
@pytest.mark.parametrize("by", ["option", "policy"])
def test_a_name_that_is_no_feature_is_one_line(files, tmp_path, name, by):
    release, truth = files
    named = ("--before", name) if by == "option" else ("--policy", policy(tmp_path, f'["{name}"]'))
    assert repr(name) in refused("run", release, "--truth", truth, *named, *FAST)
    assert not (tmp_path / "release.audit.json").exists()


def test_a_policy_lists_names(tmp_path):
    assert load_policy(policy(tmp_path, '["a", "b"]')).release.before == ("a", "b")
    assert load_policy("ldpaudit:default").release.before == ()
    for text in ('"a"', "[1]", "true"):
        with pytest.raises(
            ldpaudit.errors.PolicyError, match=r"line 4: The policy's 'release\.before"
        ):
            load_policy(policy(tmp_path, text))
    assert "release.before" in called("policy", "explain", "release")[1]


def test_privatize_declares_what_it_passes_through(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300), "b": rng.choice(["x", "y"], 300), "c": range(300)})
    frame["label"] = rng.choice(["no", "yes"], 300)
    frame.to_csv("t.csv", index=False)
    given = ("--label", "label", "--epsilon", "1", "--experimental", "--seed", "1")
    made = ("privatize", "t.csv", *given, "--drop", "c")
    assert called(*made, "--mechanism", "rr", "-o", "r.csv")[0] == 0
    declared = json.loads((tmp_path / "r.csv.ldpaudit.json").read_text())
    assert declared["before"] == ["a", "b"]
    called("run", "r.csv", *FAST, "--json", "r.json")
    assert known("r.json")["declared"] == ["a", "b"]
    # A column that is changed or added afterwards is not known.
    released = pd.read_csv("r.csv").assign(z=1.5)
    released.loc[4, "a"] = 0.5
    released.to_csv("r.csv", index=False)
    called("run", "r.csv", "--truth", "t.csv", *FAST, "--json", "r.json")
    assert known("r.json") == {"truth": ["b"], "named": [], "declared": [], "unknown": ["a", "z"]}
    for mechanism in ("dummy-features-rr", "gaussian-rr"):
        more = ("--radius", "3", "--project", "--sigma", "2", "--delta", "1e-5", "--drop", "b")
        more = more if mechanism == "gaussian-rr" else ()
        assert called(*made, "--mechanism", mechanism, *more, "-o", "q.parquet")[0] == 0
        content = pq.read_schema("q.parquet").metadata[b"ldpaudit"]
        assert "before" not in json.loads(content)
        (tmp_path / "q.parquet").unlink()


def test_declare_adds_them(files, tmp_path):
    release, _ = files
    _, said = called("declare", release, "--before", "x1")
    assert "before the noise 'x1'" in said
    called("declare", release, "--before", "town")
    content = json.loads(pq.read_schema(release).metadata[b"ldpaudit"])
    assert content["before"] == ["x1", "town"]
    assert content["mechanism"]["epsilon"] == 1.0
    assert "Nothing was written" in called("declare", release, "--before", "x1")[1]
    assert "'x1', 'town'" in called("declare", release)[1]
    plain = tmp_path / "plain.csv"
    table(rows=300, claimed=None)[0].to_pandas().to_csv(plain, index=False)
    claim = ("--label", "label", "--epsilon", "1")
    called("declare", plain, *claim, "--before", "*")
    declared = json.loads((tmp_path / "plain.csv.ldpaudit.json").read_text())
    assert declared["before"] == ["x0", "x1", "x2", "town"]
    assert "'x9'" in refused("declare", plain, "--before", "x9")
    assert "other columns than the private" in refused("declare", plain, "--before", "label")
    (tmp_path / "plain.csv.ldpaudit.json").unlink()
    assert "Say what made the labels" in refused("declare", plain, "--before", "x1")


def test_several_columns_and_releases(files, tmp_path):
    release, truth = files
    label = pq.read_table(release)["label"]
    both = pq.read_table(release).append_column("other", label)
    true = pq.read_table(truth).append_column("other", pq.read_table(truth)["label"])
    options = {"truth": true, "epsilon": 1.0, "only": ["mechanism"], "before": ["town"]}
    several = ldpaudit.audit(both.replace_schema_metadata({}), label=["label", "other"], **options)
    expected = BeforeNoise(named=("town",), unknown=("x0", "x1", "x2"))
    assert several.release.before == expected
    assert [part.release.before for part in several.labels] == [expected] * 2
    again = tmp_path / "again.parquet"
    pq.write_table(pq.read_table(release).drop_columns(["x2"]), again)
    year = {"truth": str(truth), "only": ["mechanism", "person"], "answers": "remembered"}
    releases = [str(release), str(again)]
    both_years = ldpaudit.audit(releases, before=["x0"], **year)
    assert both_years.release.before is None
    parts = [part.release.before for part in both_years.releases]
    assert [part.named for part in parts if part] == [("x0",), ("x0",)]
    with pytest.raises(ldpaudit.errors.InputError, match="Release 2: There is no column 'x2'"):
        ldpaudit.audit(releases, before=["x2"], **year)


def test_compare_takes_them(files, tmp_path):
    release, truth = files
    other = tmp_path / "other.parquet"
    pq.write_table(pq.read_table(release), other)
    asked = ("--truth", truth, "--policy", policy(tmp_path, '["x2"]'), "--before", "x0", *FAST)
    assert called("compare", release, other, *asked, "--json", "c.json")[0] in (0, 1, 3)
    found = json.loads((tmp_path / "c.json").read_text())["releases"]
    assert [one["release"]["before"]["named"] for one in found] == [["x0", "x2"]] * 2


def test_a_release_in_memory_may_say_it():
    features = ldpaudit.datasets.read_release(table(rows=60)[0]).release.features
    codes = np.zeros(60, dtype=np.int32)
    release = Release(features, codes, ("a", "b"), ("a", "b"), before=frozenset({0, 3}))
    assert release.take(np.arange(9)).before == {0, 3}
