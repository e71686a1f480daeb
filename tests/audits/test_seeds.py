"""The audit that tries seeds, from a release to its verdict."""

import math
import re
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import AuditResult

CLAIM = {"name": "randomized-response", "epsilon": 1.0}
KEEP = math.e / (1 + math.e)
SECRET = np.random.default_rng(2**100).random(6000)
GUESSED = np.random.default_rng(42).random(6000)
PEOPLE = np.random.default_rng(20).integers(0, 2, 6000)
SIMULATED = (np.random.default_rng(0).random(6000) < 0.3).astype(int)
"""True labels that were drawn with a seed."""


def audited(
    released: Any,
    truth: Any,
    claim: Any = CLAIM,
    *,
    told: Any = 0,
    only: tuple[str, ...] = ("seeds",),
    **options: Any,
) -> AuditResult:
    """Audit labels beside two features that tell some numbers of each row."""
    noise = np.random.default_rng(2**99).standard_normal((2, len(released)))
    table = pd.DataFrame({"x0": told + noise[0], "x1": told + noise[1], "label": released})
    return ldpaudit.audit(table, truth, claim, only=only, rng=0, threads=1, **options)


def binary(
    numbers: np.ndarray, labels: np.ndarray = PEOPLE, known: bool = True, **more: Any
) -> AuditResult:
    labels = labels[: len(numbers)]
    released = np.where(numbers < KEEP, labels, 1 - labels)
    return audited(released, labels if known else None, told=labels, **more)


def check(result: AuditResult) -> str:
    return result.check("guessable-seed").verdict


@pytest.mark.parametrize("truth", [True, False])
def test_a_guessed_seed_is_a_violation(truth: bool) -> None:
    result = binary(GUESSED, known=truth)
    # Without true labels these may be what was drawn with the seed, as in simulated data.
    assert result.verdict == check(result) == ("fail" if truth else "inconclusive")
    [warning] = [note.text for note in result.notes if note.audit == "seeds"]
    assert "numpy.random.default_rng" in warning
    assert "42" not in warning
    assert result["seeds.p_value"].value < 1e-9
    if not truth:  # Labels simulated with a seed accuse nobody.
        assert check(binary(SECRET, SIMULATED, False)) == "inconclusive"


def test_honest_noise_passes_and_the_check_takes_no_level_from_the_others() -> None:
    assert check(binary(SECRET[:3000], known=False)) == "pass"
    result = binary(SECRET[:3000], only=("mechanism", "power", "seeds"))
    assert check(result) == "pass"
    assert result.verdict != "fail"
    levels = {check.id: check.confidence for check in result.checks}
    assert levels["claimed-epsilon"] == pytest.approx(0.95)
    assert levels["guessable-seed"] == pytest.approx(1 - 1e-9)


@pytest.mark.validate
def test_seconds_of_a_day_are_tried_on_request() -> None:
    numbers = np.random.default_rng(1_767_312_345).random(500)
    assert check(binary(numbers)) == "pass"
    assert check(binary(numbers, seeds_tried=0, made_on=date(2026, 1, 2))) == "fail"


def test_more_seeds_can_be_tried() -> None:
    numbers = np.random.RandomState(700).rand(1000)
    assert check(binary(numbers, seeds_tried=600)) == "pass"
    assert check(binary(numbers, seeds_tried=800)) == "fail"
    with pytest.raises(InputError, match=re.escape("Got -1 instead")):
        binary(np.zeros(200), seeds_tried=-1)


def test_several_classes_and_numbers_with_noise_of_a_seed() -> None:
    rng, names = np.random.default_rng(1), np.array(list("abcd"))
    codes = rng.integers(0, 4, 3000).astype(np.int32)
    mechanism = RandomizedResponse.from_epsilon(tuple("abcd"), 1.0)
    released = mechanism.sample(codes, np.random.default_rng(7))
    assert check(audited(names[released], names[codes], seeds_tried=100)) == "fail"
    # numpy turns one uniform number into each Laplace number.
    noise = np.rint(np.random.RandomState(1).laplace(0, 20, 3000)).astype(int)
    claim = {"name": "discrete-laplace", "low": 0, "high": 20, "step": 1, "epsilon": 1.0}
    labels = rng.integers(0, 21, 3000)
    assert check(audited(labels + noise, labels, claim, seeds_tried=100)) == "fail"
