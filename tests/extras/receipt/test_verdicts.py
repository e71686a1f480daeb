"""What a replay leads to: the verdict of run and of verify, for each thing that can be wrong."""

import datetime
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import called
from test_checks import CLAIM, FOUND, SECTIONS

import ldpaudit
from ldpaudit.audits.mechanism import agreement
from ldpaudit.estimators.epsilon.consistency import channel_consistency
from ldpaudit.extras.receipt.replay import replay
from ldpaudit.judging.checks.interface import Circumstances, Evidence
from ldpaudit.judging.checks.listing import TESTS_OF_NOISE
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.verdict import judge
from ldpaudit.receipt.found import ColumnReplay, Replay
from ldpaudit.result import Finding

SMALL = ("--only", "mechanism", "--only", "power", "--quiet")


def judged(found, leaking, checks=None):
    """Judge what a replay found, where tests of the noise leak."""
    content = {"schema": 1, "checks": {name: SECTIONS.get(name, {}) for name in FOUND}}
    content["checks"]["replay"] = checks or {}
    evidence = Evidence.collect([FOUND[name](name in leaking) for name in FOUND] + [Finding()])
    return judge(
        Policy.model_validate(content),
        CLAIM,
        evidence,
        rows=5000,
        sha256=None,
        today=datetime.date(2026, 6, 1),
        circumstances=Circumstances(replay=found),
    )


def found(status="proven", **values):
    column = ColumnReplay("label", 5000, values.pop("equal", 5000), **values.pop("column", {}))
    sizes = {"committed": 5000, "rows": 5000, "kept": 5000} | values
    return Replay(status, columns=(column,), **sizes)


def test_no_test_of_the_noise_speaks_against_a_proof():
    judgement = judged(found(), TESTS_OF_NOISE)
    verdicts = {check.id: check.verdict for check in judgement.checks}
    assert {verdicts[name] for name in (*TESTS_OF_NOISE & verdicts.keys(), "replay")} == {"pass"}
    assert judgement.verdict == "pass"
    assert judgement.sentence.startswith(
        "Proven: all 5,000 released labels are what the declared mechanism draws with the "
        "committed key. So ε = 1 is exact: "
    )


def test_a_proof_says_nothing_of_the_features():
    # The noise of features is asked for only where it is claimed.
    rest = FOUND.keys() - TESTS_OF_NOISE - {"feature-noise"}
    judgement = judged(found(), rest)
    verdicts = {check.id: check.verdict for check in judgement.checks}
    assert {verdicts[name] for name in rest} == {"fail"}
    assert judgement.verdict == "fail"


@pytest.mark.parametrize(
    ("what", "verdict"),
    [
        (found("changed", equal=4960, column={"true": 40, "p_value": 1e-9}), "fail"),
        (found("changed", equal=4960, column={"true": 1, "p_value": 1.0}), "inconclusive"),
        (Replay("edited", "The declaration was changed", epsilon=(3.0, 1.0)), "fail"),
        (Replay("edited", "The declaration was changed", epsilon=(0.5, 1.0)), "inconclusive"),
        (Replay("foreign", "The key is of another release"), "inconclusive"),
    ],
)
def test_what_is_wrong_decides(what, verdict):
    judgement = judged(what, [])
    assert {c.id: c.verdict for c in judgement.checks}["replay"] == verdict
    assert judgement.verdict == verdict


@pytest.mark.parametrize("status", ["partly", "unmatched", "impossible"])
def test_what_cannot_be_drawn_again_is_tested_as_ever(status):
    for leaking in ([], ["claimed-epsilon"]):
        judgement = judged(Replay(status, "there is no key"), leaking)
        assert "replay" not in {check.id for check in judgement.checks}
        assert judgement.verdict == ("fail" if leaking else "pass")
    required = judged(Replay(status, "there is no key"), [], {"required": True})
    assert required.verdict == "inconclusive"
    assert judged(None, [], {"required": True}).verdict == "inconclusive"
    assert judged(None, []).verdict == "pass"


# --- From the files -----------------------------------------------------------------------------


@pytest.fixture
def few(tmp_path, monkeypatch):
    """Sixty rows, three classes, and four people in one of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    labels = np.repeat(["a", "b", "c"], [30, 26, 4])
    rng.shuffle(labels)
    data = pd.DataFrame({"x": rng.random(60), "label": labels})
    data["person"] = [f"p{i}" for i in range(60)]
    data.to_parquet("data.parquet")
    words = ("--mechanism", "rr", "--epsilon", "1", "--id", "person")
    assert (
        called("privatize", "data.parquet", "-o", "r.parquet", "--secret", "t.parquet", *words)[0]
        == 0
    )
    return tmp_path


def run(*words):
    return called("run", "r.parquet", "--truth", "t.parquet", "--json", "r.json", *SMALL, *words)


def test_sixty_rows_are_proven(few):
    status, printed = run()
    assert status == 0, printed
    assert "Proven: all 60 released labels are what" in printed
    stored = json.loads(Path("r.json").read_text())
    numbers = {one["id"]: (one["value"], one["kind"]) for one in stored["estimates"]}
    assert numbers["release.replayed"] == (1.0, "exact")
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert (status, printed.startswith("Proven")) == (0, True) or "Proven" in printed


def test_proven_noise_does_not_answer_what_was_not_looked_for(few):
    status, printed = run("--timeout", "1e-9")
    assert status == 3, printed
    assert "not all audits could look: its time was over" in printed


def test_noise_that_is_proven_is_not_said_to_be_unlike_its_claim(tmp_path, monkeypatch):
    """By chance the counts of a proven release look unlike its claim, here for certain."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": rng.random(300), "label": rng.choice(["a", "b"], 300)})
    data.to_parquet("data.parquet")
    words = ("--mechanism", "rr", "--epsilon", "1", "--label", "label")
    called("privatize", "data.parquet", "-o", "r.parquet", "--secret", "t.parquet", *words)

    def unlike(*given):
        return replace(channel_consistency(*given), p_value=1e-4)

    monkeypatch.setattr(agreement, "channel_consistency", unlike)
    status, printed = run("--html", "r.html")
    assert (status, "Proven" in printed) == (0, True), printed
    assert "do not follow" not in Path("r.html").read_text(encoding="utf-8")


def rewritten(change, name="r.parquet"):
    """Change the released table and keep its declaration."""
    table = pq.read_table(name)
    metadata = table.schema.metadata
    pq.write_table(change(table).replace_schema_metadata(metadata), name)


def with_labels(change):
    def of(table):
        labels = table.column("label").to_pylist()
        place = table.schema.get_field_index("label")
        return table.set_column(place, "label", pa.array(change(labels)))

    return of


def test_true_labels_that_are_put_back_are_found(few):
    truth = pq.read_table("t.parquet").column("label").to_pylist()
    before = pq.read_table("r.parquet").column("label").to_pylist()
    rewritten(with_labels(lambda labels: truth[:40] + labels[40:]))
    changed = sum(a != b for a, b in zip(truth[:40], before[:40], strict=True))
    assert run()[0] == 1
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet", "--scores", "s.csv")
    assert status == 1
    assert f"{changed} of 60 released labels were changed after the noise" in printed
    assert f": {changed} of them are true, where 0 of those that were drawn had been" in printed
    rows = pd.read_csv("s.csv")["row"].tolist()
    assert rows == [i + 1 for i in range(40) if truth[i] != before[i]]
    assert Path("s.csv").stat().st_mode & 0o777 == 0o600


def test_labels_that_a_rule_overwrites_are_inconclusive(few):
    rewritten(with_labels(lambda labels: ["c"] * 6 + labels[6:]))
    status, printed = run()
    assert status == 3, printed
    assert "released labels were changed after the noise" in printed or "label was" in printed


def test_one_label_changed_and_changed_back(few):
    rewritten(with_labels(lambda labels: ["b" if labels[0] != "b" else "a", *labels[1:]]))
    assert run()[0] == 3
    assert replay("r.parquet", "t.parquet").columns[0].places.tolist() == [0]
    original = pq.read_table("t.parquet")
    assert original.num_rows == 60


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (lambda t: t.take(pa.array(range(59, -1, -1))), "proven", "all 60 released labels"),
        (lambda t: t.slice(0, 55), "partly", "5 rows were left out after the noise"),
        (lambda t: pa.concat_tables([t, t.slice(0, 2)]), "partly", "2 rows were doubled"),
    ],
)
def test_rows_are_matched_by_id(change, status, words, few):
    rewritten(change)
    result = replay("r.parquet", "t.parquet")
    assert result.status == status
    from ldpaudit.receipt.words import reason

    assert words in reason(result)
    assert result.columns[0].changed == 0


def test_rows_without_ids_are_compared_in_order(few):
    for name in ("r.parquet", "t.parquet"):
        rewritten(lambda t: t.drop_columns(["person"]), name)
    assert replay("r.parquet", "t.parquet").proven
    rewritten(lambda t: t.slice(0, 50))
    assert replay("r.parquet", "t.parquet").status == "unmatched"
    assert called("verify", "r.parquet", "--truth", "t.parquet")[0] == 3


def test_rows_in_another_order_without_ids_are_said_to_be_so(few):
    for name in ("r.parquet", "t.parquet"):
        rewritten(lambda t: t.drop_columns(["person"]), name)
    rewritten(lambda t: t.take(pa.array(np.random.default_rng(1).permutation(60))))
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert status == 3
    assert "in another order" in printed


@pytest.mark.parametrize(("epsilon", "status"), [(0.5, 1), (2.0, 3)])
def test_an_edited_declaration_is_found(epsilon, status, few):
    table = pq.read_table("r.parquet")
    stated = json.loads(table.schema.metadata[b"ldpaudit"])
    stated["mechanism"].pop("lambda")
    stated["mechanism"]["epsilon"] = epsilon
    content = json.dumps(stated).encode()
    pq.write_table(table.replace_schema_metadata({b"ldpaudit": content}), "r.parquet")
    ended, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert ended == status, printed
    assert run()[0] in (1, status)
    assert "declaration was changed after the noise was drawn" in printed
    assert f"drawn at ε = 1, and ε = {epsilon:g} is declared" in printed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda stated: stated["mechanism"]["classes"].reverse(), "'mechanism.classes' is not"),
        (
            lambda stated: stated["mechanism"].update(
                classes=[*stated["mechanism"]["classes"], "zz"], epsilon=1.0, **{"lambda": None}
            ),
            "'mechanism.classes', 'mechanism.epsilon' and 'mechanism.lambda' are not as they were",
        ),
        (lambda stated: stated.pop("provenance"), "'provenance' is not as it was; ε is the same"),
        (lambda stated: stated.update(before=[]), "'before'"),
        (lambda stated: (stated.pop("before"), stated.pop("provenance")), "'before' and 'prov"),
    ],
)
def test_what_was_edited_is_named(change, words, few):
    """Where ε is as it was, the entry that differs, and none of its values."""
    table = pq.read_table("r.parquet")
    stated = json.loads(table.schema.metadata[b"ldpaudit"])
    change(stated)
    content = json.dumps(stated).encode()
    pq.write_table(table.replace_schema_metadata({b"ldpaudit": content}), "r.parquet")
    ended, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert ended == 3, printed
    assert "declaration was changed after the noise was drawn: '" in printed
    assert words in printed
    assert "it was drawn at" not in printed
    assert "zz" not in printed


def test_the_truth_of_another_release_is_said_to_be_so(few):
    words = ("--mechanism", "rr", "--epsilon", "1", "--id", "person")
    called("privatize", "data.parquet", "-o", "b.parquet", "--secret", "tb.parquet", *words)
    status, printed = called(
        "run", "r.parquet", "--truth", "tb.parquet", "--json", "x.json", *SMALL
    )
    assert status == 3, printed
    assert "is not the one that this release commits to" in printed
    assert called("verify", "r.parquet", "--truth", "tb.parquet")[0] == 3


def test_true_labels_that_were_changed_are_said_to_be_so(few):
    rewritten(with_labels(lambda labels: [*reversed(labels)]), "t.parquet")
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert status == 3
    assert "true labels in the file are not those that the key was committed with" in printed
    # What differs from them need not be the release: no number of changed labels is given.
    assert "perhaps they stand in another order" in printed
    assert "were changed after the noise" not in printed
    assert not replay("r.parquet", "t.parquet").columns


def test_true_labels_in_a_release_are_found_although_its_file_of_them_was_changed(few):
    truth = pq.read_table("t.parquet").column("label").to_pylist()
    rewritten(with_labels(lambda labels: truth[:40] + labels[40:]))
    rewritten(
        with_labels(lambda labels: [*labels[:-1], "b" if labels[-1] != "b" else "a"]), "t.parquet"
    )
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert status == 1
    assert "not those that the key was committed with" in printed
    assert "released labels were changed after the noise" in printed


def test_labels_that_are_gone_are_missing_and_not_changed(few):
    rewritten(with_labels(lambda labels: [None] * 9 + labels[9:]))
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert (status, "Not proven: 9 of 60 released labels are missing." in printed) == (3, True)
    rewritten(with_labels(lambda labels: [*labels[:-1], "b" if labels[-1] != "b" else "a"]))
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet")
    assert "9 of 60 released labels are missing; 1 of 60 released labels was changed" in printed
    assert "where" not in printed.splitlines()[0]


NUMBERS = {
    "whole": (lambda x: x.round(), " and look rounded to whole numbers."),
    "cut": (lambda x: np.floor(x), " and look rounded to whole numbers."),
    "tens": (lambda x: x.round(-1), " and look rounded to multiples of 10."),
    "decimals": (lambda x: x.round(2), " and look rounded to 2 decimals."),
    "shifted": (lambda x: x + 0.37, "60 of 60 released labels were changed after the noise."),
    "blanked": (lambda x: x * 0 - 7, "60 of 60 released labels were changed after the noise."),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_that_were_rounded_look_so(kind, few):
    pd.DataFrame({"x": range(60), "y": np.linspace(0, 100, 60)}).to_parquet("data.parquet")
    words = ("--label", "y:laplace:epsilon=1:labels=0:100", "--secret", "t.csv", "--overwrite")
    assert called("privatize", "data.parquet", "-o", "n.csv", *words)[0] == 0
    change, expected = NUMBERS[kind]
    released = pd.read_csv("n.csv")
    released.assign(y=change(released["y"])).to_csv("n.csv", index=False)
    status, printed = called("verify", "n.csv", "--truth", "t.csv")
    assert (status, expected in printed) == (3, True), printed
    released.assign(y=released["y"].where(released.index > 4)).to_csv("n.csv", index=False)
    assert (
        "5 of 60 released labels are missing." in called("verify", "n.csv", "--truth", "t.csv")[1]
    )


@pytest.mark.parametrize("columns", [1, 2])
def test_a_true_label_that_its_released_one_does_not_depend_on_is_sealed(columns, few):
    """Of a label that the noise replaced any true one would give the same release."""
    data = pd.read_parquet("data.parquet")
    data["other"] = data["label"]
    data.to_parquet("data.parquet")
    second = ("--label", "other:rr:epsilon=1") if columns == 2 else ("--drop", "other")
    which = ("--label", "label:rr:epsilon=1", *second)
    words = ("-o", "r.parquet", "--secret", "t.parquet", "--overwrite")
    assert called("privatize", "data.parquet", *words, *which)[0] == 0
    table = pq.read_table("t.parquet")
    place, unseen = table.schema.get_field_index("label"), 0
    for row in range(60):
        labels = table.column("label").to_pylist()
        labels[row] = "b" if labels[row] != "b" else "a"
        pq.write_table(table.set_column(place, "label", pa.array(labels)), "t.parquet")
        found = replay("r.parquet", "t.parquet")
        assert found.status in ("changed", "foreign")
        unseen += found.status == "foreign"
        assert bool(found.columns) is (found.status == "changed")
    assert unseen > 5
    pq.write_table(table, "t.parquet")
    assert replay("r.parquet", "t.parquet").proven


def test_python_and_the_public_page_say_it(few):
    result = ldpaudit.audit("r.parquet", "t.parquet", only=["mechanism", "power"])
    assert result.sentence.startswith("Proven: all 60")
    assert result["release.replayed"].value == 1.0
    status, printed = run("--profile", "public")
    assert status == 0
    assert "The noise was proven by replay on " in printed
    assert "does not prove" not in printed


def test_one_key_for_two_releases_is_refused(few):
    copy = pq.read_table("r.parquet")
    pq.write_table(copy.append_column("y", pa.array(range(60))), "again.parquet")
    truths = ("--truth", "t.parquet", "--truth", "t.parquet")
    status, printed = called(
        "run", "r.parquet", "again.parquet", "--id", "person", *truths, "--json", "x.json", *SMALL
    )
    assert status == 2
    assert "drawn from one key" in printed


def test_a_release_without_a_receipt_is_an_error_of_verify(few):
    called("privatize", "data.parquet", "-o", "n.parquet", "--mechanism", "rr", "--epsilon", "1")
    status, printed = called("verify", "n.parquet", "--truth", "t.parquet")
    assert status == 2
    assert "carries no receipt" in printed


@pytest.mark.parametrize("kind", ["several rows", "other ids", "missing ids"])
def test_ids_that_match_no_row_are_left_aside(kind, few):
    data = pd.read_parquet("data.parquet")
    if kind == "several rows":
        data["person"] = [f"p{i // 3}" for i in range(60)]
    data.to_parquet("data.parquet")
    words = ("--mechanism", "rr", "--epsilon", "1", "--id", "person", "--overwrite")
    made = called("privatize", "data.parquet", "-o", "r.parquet", "--secret", "t.parquet", *words)
    assert made[0] == 0
    ids = {"other ids": [f"q{i}" for i in range(60)], "missing ids": [None] * 5 + ["p9"] * 55}
    if kind in ids:
        values = pa.array(ids[kind])
        rewritten(lambda t: t.set_column(t.schema.get_field_index("person"), "person", values))
    assert replay("r.parquet", "t.parquet").proven
