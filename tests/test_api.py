from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from releases import table, written

import ldpaudit
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.judging.policy import parse_policy
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import AuditResult

FAST = ("mechanism", "power")


class OfPolars:
    """A table that only offers its Arrow stream, as a Polars frame does."""

    def __init__(self, table: Any) -> None:
        self.__arrow_c_stream__ = table.__arrow_c_stream__


def frames(**options: Any) -> tuple[pd.DataFrame, pd.Series]:
    release, truth = table(claimed=None, **options)
    return release.to_pandas(), truth.to_pandas()["label"]


def lower(result: AuditResult) -> float:
    found = result.estimate("mechanism.epsilon_lower")
    assert found is not None
    return found.value


CLAIMS = [
    {"name": "randomized-response", "epsilon": 1.0},
    RandomizedResponse.from_epsilon(("no", "yes"), 1.0),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=["mapping", "mechanism"])
def test_every_kind_of_table_gives_the_same_numbers(claim: Any, tmp_path: Path) -> None:
    frame, truth = frames(rows=500)
    arrow, _ = table(rows=500, claimed=None)
    path, truth_path = written(tmp_path, rows=500, claimed=None)
    found = {
        lower(ldpaudit.audit(release, true, claim, 5, only=FAST))
        for release, true in (
            (frame, truth),
            (frame, truth.to_numpy()),
            (arrow, truth.to_frame()),
            (OfPolars(arrow), OfPolars(pa.Table.from_pandas(truth.to_frame()))),
            (path, truth_path),
            (str(path), truth),
        )
    }
    assert len(found) == 1


def test_a_generator_is_as_good_as_a_seed() -> None:
    frame, truth = frames(rows=1000)
    claim = {"name": "randomized-response", "epsilon": 1.0}
    results = [
        ldpaudit.audit(frame, truth, claim, np.random.default_rng(3), only=FAST) for _ in range(2)
    ]
    assert results[0].estimates == results[1].estimates
    assert results[0].run.seed == results[1].run.seed


def test_no_claim_is_inconclusive_and_unknown_too() -> None:
    frame, truth = frames(rows=1000)
    for claim in (None, "unknown"):
        result = ldpaudit.audit(frame, truth, claim, 1, only=FAST)
        assert result.verdict == "inconclusive"
        assert result.mechanism.epsilon is None


def test_a_policy_decides(tmp_path: Path) -> None:
    frame, truth = frames(rows=2000, made=3.0)
    policy = parse_policy(
        'schema = 1\nextends = "ldpaudit:default"\n[claim]\nepsilon = 1.0\n[audit]\nseed = 9'
    )
    result = ldpaudit.audit(frame, truth, policy=policy, rng=1, only=FAST)
    assert result.verdict == "fail"
    assert result.run.seed == 9
    assert result.mechanism.declared == "policy"


def test_reports_come_from_the_result(tmp_path: Path) -> None:
    frame, truth = frames(rows=1000)
    result = ldpaudit.audit(frame, truth, CLAIMS[0], 1, only=FAST)
    assert result.to_html(tmp_path / "a.html") == (tmp_path / "a.html").read_text()
    assert AuditResult.from_json(result.to_json(tmp_path / "a.json")) == result
    assert result.sentence.split(":")[0] in result._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": 0}, "'queries'"),
        ({"threads": -1}, "'threads'"),
        ({"only": ("mechanisms",)}, "no audit 'mechanisms'"),
        ({"only": ("power",), "skip": ("power",)}, "No audit is left"),
        ({"mechanism": {"epsilon": 1.0}}, "'name'"),
        ({"rng": -1}, "seed"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    frame, _ = frames(rows=300)
    with pytest.raises(InputError, match=message):
        ldpaudit.audit(frame, **options)


def test_leaving_an_audit_out_changes_no_other_number() -> None:
    frame, truth = frames(rows=500)
    whole = ldpaudit.audit(frame, truth, CLAIMS[0], 4)
    part = ldpaudit.audit(frame, truth, CLAIMS[0], 4, skip=("label-inference",))
    again = {e.id: e for e in part.estimates}
    assert {"mechanism.epsilon_lower", "instance_loss.mean_lower"} <= set(again)
    for estimate in whole.estimates:
        if estimate.id in again:
            assert estimate == again[estimate.id], estimate.id


def test_a_fault_names_its_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    from ldpaudit.audits import power

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("secret cell")

    monkeypatch.setattr(power, "AUDIT", replace(power.AUDIT, parts=broken))
    frame, truth = frames(rows=300)
    with pytest.raises(LdpAuditError, match="audit 'power' \\(ZeroDivisionError\\)") as caught:
        ldpaudit.audit(frame, truth, CLAIMS[0], 1, only=FAST)
    assert "secret" not in str(caught.value)


def test_the_public_names() -> None:
    for name in ldpaudit.__all__:
        assert getattr(ldpaudit, name) is not None
    with pytest.raises(AttributeError):
        _ = ldpaudit.nothing


@pytest.mark.parametrize("seed", [-5, np.int64(-5)])
def test_a_negative_seed_is_refused(seed: Any) -> None:
    release, truth = frames()
    with pytest.raises(InputError, match="seed must not be negative"):
        ldpaudit.audit(release, truth, CLAIMS[0], seed, only=FAST)


def test_a_column_named_by_a_number_is_one_clear_line():
    table = pd.DataFrame({0: [1.5, 2.5, 3.5], 5: [0, 1, 1]})
    with pytest.raises(InputError, match="'label' must be a text, as '5'"):
        ldpaudit.audit(table, label=5, epsilon=1.0)
