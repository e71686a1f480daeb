"""Several private columns of a table, from Python and the command line, in options and files."""

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.several.columns_of_people import CLASSES, true_vectors

import ldpaudit
from ldpaudit.errors import InputError, PolicyError
from ldpaudit.mechanisms import RandomizedResponse

FAST = ("mechanism", "person")
ROWS = 400
NAMES = ("income", "illness", "vote")
CLAIMED = ("income:rr:epsilon=1", "illness:rr:epsilon=1", "vote:rr:epsilon=1")


@pytest.fixture(scope="module")
def tables():
    """Return a release of three private columns by randomized response at ε = 1, and its truth."""
    rng = np.random.default_rng(2)
    labels, x = true_vectors(ROWS, rng)
    released, truth = pd.DataFrame({"x": x}), pd.DataFrame()
    for j, (name, classes) in enumerate(zip(NAMES, CLASSES, strict=True)):
        drawn = RandomizedResponse.from_epsilon(classes, 1.0).sample(labels[:, j], rng)
        released[name] = np.array(classes)[drawn]
        truth[name] = np.array(classes)[labels[:, j]]
    return released, truth


def test_columns_are_named_with_their_claims(tables):
    result = ldpaudit.audit(*tables, label=CLAIMED, only=FAST)
    assert [part.mechanism.epsilon for part in result.labels] == pytest.approx([1.0] * 3)
    assert result.mechanism.epsilon == pytest.approx(3.0)
    assert result.labels[0].release.features == 3
    assert result["person.epsilon_lower"].value < 3.0


def test_one_claim_holds_for_all_columns(tables):
    result = ldpaudit.audit(*tables, "rr", epsilon=1.5, label=NAMES[:2], only=FAST)
    assert [part.mechanism.epsilon for part in result.labels] == pytest.approx([1.5, 1.5])


def test_one_column_with_its_claim_is_an_audit_of_one(tables):
    released, truth = tables
    result = ldpaudit.audit(released, truth["vote"], label=CLAIMED[2], only=("mechanism", "power"))
    assert not result.labels
    assert result.mechanism.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"label": ("income:rr:epsilon=1", "vote")}, "of each private column"),
        ({"label": CLAIMED, "epsilon": 2.0}, "claim once"),
        ({"label": ("income:rr:epsilon=1:prior=p.csv", "vote:rr:epsilon=1")}, "prior is no part"),
        ({"label": ("vote", "vote")}, "named twice"),
        ({"label": set(NAMES)}, "numbered in their order"),
        ({"label": NAMES, "truth_column": set(NAMES)}, "numbered in their order"),
        ({"label": NAMES, "only": ("person",)}, "need an audit, too"),
        ({"label": NAMES, "canaries": np.ones((ROWS, 2))}, "about one private column"),
        ({"label": (*NAMES, "age")}, "column 4 of 4 has none"),
    ],
)
def test_what_contradicts_is_refused_in_one_line(tables, stated, told):
    with pytest.raises(InputError, match=told) as error:
        ldpaudit.audit(*tables, **{"only": FAST, **stated})
    assert "\n" not in str(error.value)


def test_a_policys_claim_of_a_whole_is_its_epsilon_alone(tables, tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('schema = 1\nextends = "ldpaudit:default"\n[claim]\nlambda = 0.5\n')
    with pytest.raises(PolicyError, match="state its epsilon alone"):
        ldpaudit.audit(*tables, label=CLAIMED, policy=path, only=FAST)


def test_the_command_line_shows_names_as_typed_and_stores_no_file(
    tables, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    for table, name in zip(tables, ("survey.csv", "people.csv"), strict=True):
        table.to_csv(name, index=False)
    claims = [f"--label={claim}" for claim in ("income:rr:epsilon=0.1", *CLAIMED[1:])]
    files = ("survey.csv", "--truth", "people.csv")
    status, out, _ = command("run", *files, *claims, "--only=mechanism")
    assert status == 1
    told = "ldpaudit advise survey.csv --label income --label illness --label vote"
    assert f"{told} --truth people.csv" in out
    stored = (tmp_path / "survey.audit.json").read_text()
    assert json.loads(stored)["labels"][0]["verdict"] == "fail"
    assert "people.csv" not in stored


Command = Callable[..., tuple[int, str, str]]


def people(folder, n=2000):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(n) < 0.93, "no", "yes")
    frame = pd.DataFrame({"a": rng.normal(size=n) + (labels == "yes"), "label": labels})
    data, prior = folder / "data.parquet", folder / "prior.csv"
    frame.to_parquet(data, index=False)
    prior.write_text("label,probability\nno,0.93\nyes,0.07\n")
    return data, prior


def sentence(release):
    result = json.loads(release.with_suffix(".audit.json").read_text())
    return str(result["sentence"])


def test_one_kept_label_is_a_result(tmp_path, command):
    (data, prior), release = people(tmp_path), tmp_path / "release.parquet"
    words = ["--mechanism", "rr-top-k", "--epsilon", 1, "--prior", prior, "-o", release]
    assert command("privatize", data, *words)[0] == 0
    for truth in (["--truth", data], []):
        assert command("run", release, *truth)[0] == 0
        assert "same released label" in sentence(release)
        assert "0.0" not in sentence(release)


def test_one_label_under_another_claim_does_not_pass(tmp_path, command):
    (data, _), release = people(tmp_path), tmp_path / "release.parquet"
    mechanism = {"name": "randomized-response", "classes": ["no", "yes"], "epsilon": 1.0}
    content = {"version": 1, "label": "label", "mechanism": mechanism}
    table = pa.table({"a": pq.read_table(data)["a"], "label": ["no"] * 2000})
    pq.write_table(table.replace_schema_metadata({"ldpaudit": json.dumps(content)}), release)
    for truth in (["--truth", data], []):
        command("run", release, *truth)
        result = json.loads(release.with_suffix(".audit.json").read_text())
        verdicts = {check["id"]: check["verdict"] for check in result["checks"]}
        assert verdicts["claimed-channel"] == "fail"


def test_one_label_of_unknown_kind_is_refused(tmp_path, command):
    release = tmp_path / "release.parquet"
    pq.write_table(pa.table({"a": np.arange(100.0), "label": ["no"] * 100}), release)
    status, _, error = command("run", release, "--epsilon", 1)
    assert (status, "two values" in error) == (2, True), error
