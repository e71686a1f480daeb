"""Channels by stratum: each stratum is held against its own claim."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse

CLASSES, REGIONS, CLAIMED = ("no", "yes"), ("north", "south"), (1.0, 2.0)
FAST = ("mechanism", "power")


def release(
    used: tuple[float, float], n: int = 2_000, seed: int = 0
) -> tuple[pa.Table, np.ndarray]:
    """Return a release with a channel for each region, declared with ``CLAIMED``, and its truth."""
    rng = np.random.default_rng(seed)
    region, truth = rng.integers(0, 2, n), rng.integers(0, 2, n).astype(np.int32)
    drawn = [RandomizedResponse.from_epsilon(CLASSES, e).sample(truth, rng) for e in used]
    columns = {
        "x": truth + rng.normal(0, 2, n),
        "region": np.array(REGIONS)[region],
        "a": np.array(CLASSES)[np.where(region == 0, *drawn)],
    }
    strata = [
        {
            "value": value,
            "mechanism": {
                "name": "randomized-response",
                "classes": list(CLASSES),
                "epsilon": epsilon,
            },
        }
        for value, epsilon in zip(REGIONS, CLAIMED, strict=True)
    ]
    stated = {
        "label": "a",
        "by": "region",
        "mechanism": {"name": "by-stratum", "strata": strata},
    }
    declaration = {"version": 2, "labels": [stated]}
    metadata = {b"ldpaudit": json.dumps(declaration).encode()}
    return pa.table(columns).replace_schema_metadata(metadata), np.array(CLASSES)[truth]


def test_an_honest_release_passes_and_every_stratum_is_bounded():
    result = ldpaudit.audit(*release(CLAIMED), rng=0, only=FAST)
    assert result.verdict == "pass"
    for number, claimed in enumerate(CLAIMED, 1):
        bound = result[f"stratum-{number}.mechanism.epsilon_lower"]
        assert 0.7 * claimed < bound.value <= claimed
        assert bound.kind == "certified"
    assert result["mechanism.epsilon"].value == pytest.approx(2.0)


@pytest.mark.parametrize(("used", "stratum"), [((1.0, 4.0), 2), ((2.0, 2.0), 1)])
def test_a_stratum_that_leaks_more_than_its_own_claim_is_found(used, stratum):
    result = ldpaudit.audit(*release(used), rng=0, only=FAST)
    assert result.verdict == "fail"
    assert f"in stratum {stratum}" in result.sentence
    assert result.check("claimed-channel").verdict == "fail"


def test_a_small_stratum_is_inconclusive():
    table, truth = release(CLAIMED, n=60)
    result = ldpaudit.audit(table, truth, rng=0, only=FAST)
    assert result.verdict == "inconclusive"


def test_the_rows_that_strata_lack_are_counted():
    table, truth = release(CLAIMED, n=300)
    result = ldpaudit.audit(table, truth, rng=0, only=FAST)
    assert result.verdict == "inconclusive"
    assert re.search(r"Release [\d,]+ more rows in stratum \d", result.next_steps[0])
    assert "stratum" in result.sentence
    assert "stratum" in result.next_steps[0]


def test_without_true_labels_the_strata_are_bounded_from_the_release_alone():
    table, _ = release(CLAIMED)
    result = ldpaudit.audit(table, rng=0, only=FAST)
    assert result.verdict in ("pass", "inconclusive")
