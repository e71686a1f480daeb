"""Channels by stratum: each stratum is held against its own claim."""

import json
import re
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from levels import check_level
from worlds import by_stratum

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.reports import render
from ldpaudit.result import AuditResult

CLASSES, REGIONS, CLAIMED = ("no", "yes"), ("north", "south"), (1.0, 2.0)
FAST = ("assumptions", "mechanism", "power")


def release(used: tuple[float, ...], n: int = 2_000, seed: int = 0) -> tuple[pa.Table, np.ndarray]:
    """Return a release with a channel for each region, declared with ``CLAIMED``, and its truth."""
    rng = np.random.default_rng(seed)
    region, truth = rng.integers(0, 2, n), rng.integers(0, 2, n).astype(np.int32)
    drawn = [RandomizedResponse.from_epsilon(CLASSES, e).sample(truth, rng) for e in used]
    columns = {
        "x": truth + rng.normal(0, 2, n),
        "region": np.array(REGIONS)[region],
        "a": np.array(CLASSES)[np.where(region == 0, *drawn)],
    }
    declared = by_stratum(pa.table(columns), CLASSES, dict(zip(REGIONS, CLAIMED, strict=True)))
    return declared, np.array(CLASSES)[truth]


@cache
def audited(used: tuple[float, float], n: int = 2_000) -> AuditResult:
    return ldpaudit.audit(*release(used, n), rng=0, only=FAST)


def test_an_honest_release_passes_and_every_stratum_is_bounded():
    result = audited(CLAIMED)
    assert result.verdict == "pass"
    assert [stratum.release.label for stratum in result.strata] == list(REGIONS)
    for number, (stratum, claimed) in enumerate(zip(result.strata, CLAIMED, strict=True), 1):
        bound = stratum["mechanism.epsilon_lower"]
        assert bound == result[f"stratum-{number}/mechanism.epsilon_lower"]
        assert 0.7 * claimed < bound.value <= claimed
        assert bound.kind == "certified"
        assert stratum.mechanism.epsilon == pytest.approx(claimed)
        assert stratum.check("claimed-epsilon").verdict == "pass"
    assert result["mechanism.epsilon"].value == pytest.approx(2.0)
    assert result.check("claimed-epsilon") is None
    assert sum(stratum.release.rows for stratum in result.strata) == result.release.rows
    assert result.next_steps[0].startswith("Publish this very file")
    # The strata share the error of the policy.
    for stratum in result.strata:
        assert stratum.families
        for family in stratum.families:
            assert family.confidence == pytest.approx(1 - 0.05 / 3)


def test_a_stratum_that_leaks_more_than_its_own_claim_is_found():
    result, stratum = audited((1.0, 4.0)), 1
    assert result.verdict == "fail"
    assert f"Violation found in stratum {REGIONS[stratum]}: " in result.sentence
    assert REGIONS[1 - stratum] not in result.sentence
    assert [one.verdict == "fail" for one in result.strata] == [stratum == 0, stratum == 1]
    assert result.strata[stratum].check("claimed-channel").verdict == "fail"
    assert result.decision == "do not publish"


def test_more_declared_than_the_policy_allows_fails_though_every_stratum_keeps_its_claim(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('schema = 1\nextends = "ldpaudit:default"\n[claim]\nepsilon = 1.5\n')
    result = ldpaudit.audit(*release(CLAIMED), rng=0, only=FAST, policy=policy)
    assert result.verdict == result.check("claimed-epsilon").verdict == "fail"
    assert all(stratum.verdict == "pass" for stratum in result.strata)
    # The claim is open where the audit of the channel is left out.
    open_ = ldpaudit.audit(*release(CLAIMED, 600), rng=0, only=["assumptions"])
    assert open_.verdict == "inconclusive"


def test_a_small_stratum_says_how_many_rows_it_lacks():
    result = audited(CLAIMED, 300)
    assert result.verdict == "inconclusive"
    assert re.search(
        r"Stratum (north|south): Release more rows: .* [\d,]+ more", result.next_steps[0]
    )
    assert "in stratum" in result.sentence


def test_reports_name_the_stratum_that_leaks_and_the_public_form_all_claims():
    for form in ("html", "markdown", "junit", "sarif"):
        page = render(audited((1.0, 4.0)), form)
        assert "stratum south" in page
        assert "certified" in page
    shared = json.loads(audited(CLAIMED).to_json(profile="public"))
    parts = shared["released"]["parts"]
    assert [part["release"]["label"] for part in parts] == list(REGIONS)
    assert [part["mechanism"]["epsilon"] for part in parts] == pytest.approx(list(CLAIMED))


def test_a_column_beside_others_has_strata_of_its_own():
    table, truth = release((1.0, 4.0), n=1_200)
    rng = np.random.default_rng(5)
    other, plain = rng.integers(0, 2, 1_200), RandomizedResponse.from_epsilon(CLASSES, 1.0)
    declared = json.loads(table.schema.metadata[b"ldpaudit"])
    mechanism = {"name": plain.name, "classes": list(CLASSES), "epsilon": 1.0}
    declared["labels"].append({"label": "b", "mechanism": mechanism})
    drawn = np.array(CLASSES)[plain.sample(other.astype(np.int32), rng)]
    table = table.append_column("b", pa.array(drawn))
    table = table.replace_schema_metadata({b"ldpaudit": json.dumps(declared).encode()})
    true = pa.table({"a": truth, "b": np.array(CLASSES)[other]})
    result = ldpaudit.audit(table, true, rng=0, only=["mechanism", "person", "companions"])
    places = ["column-1", "column-1/stratum-1", "column-1/stratum-2", "column-2"]
    assert list(result.parts) == places
    # Both the stratum and the two columns together exceed what they claim: 4 for 2, and 5 for 3.
    assert result.sentence.startswith("Violation found")
    assert "column a" in result.sentence
    verdicts = [result.parts[f"column-1/stratum-{place}"].verdict for place in (1, 2)]
    assert verdicts[0] != "fail"
    assert verdicts[1] == "fail"


@pytest.mark.validate
def test_honest_strata_are_not_accused_more_often_than_the_policy_says():
    def failed(seed):
        made = release(CLAIMED, n=600, seed=seed)
        return ldpaudit.audit(*made, rng=seed, only=["mechanism"]).verdict == "fail"

    check_level(failed, 200, 0.05, 1e-3)


@pytest.mark.parametrize("way", ["one seed", "row before", "own"])
def test_noise_that_serves_rows_of_two_strata_is_found(way: str) -> None:
    """As where a seed is set in every group: the rows of one stratum have those of another."""
    n, rng = 4_000, np.random.default_rng(9)
    region, truth = rng.integers(0, 2, n), rng.integers(0, 2, n)
    numbers = rng.random(n)
    if way == "one seed":
        for place in (0, 1):
            rows = np.flatnonzero(region == place)
            numbers[rows] = np.random.default_rng(2**90).random(len(rows))
    elif way == "row before":
        numbers[1::2] = numbers[::2]
    kept = numbers < 1 / (1 + np.exp(-np.array(CLAIMED)[region]))
    labels = np.array(CLASSES)
    columns = {
        "x": rng.normal(0, 2, n),
        "region": np.array(REGIONS)[region],
        "a": labels[np.where(kept, truth, 1 - truth)],
    }
    declared = by_stratum(pa.table(columns), CLASSES, dict(zip(REGIONS, CLAIMED, strict=True)))
    result = ldpaudit.audit(declared, labels[truth], rng=0, only=FAST)
    if way == "own":
        assert result.verdict == "pass"
        return
    assert result.decision == "do not publish"
    assert "the noise of one person's row says what it did to another's" in result.sentence
    if way == "one seed":
        assert all(stratum.verdict == "pass" for stratum in result.strata)
