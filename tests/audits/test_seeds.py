"""The audit that tries seeds, from a release to its verdict."""

import math
import re
from datetime import date

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import AuditResult

CLAIM = {"name": "randomized-response", "epsilon": 1.0}
KEEP = math.e / (1 + math.e)
QUICK = {"only": ("seeds",), "rng": 0, "threads": 1}


def people(n: int = 6000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(20)
    labels = rng.integers(0, 2, n)
    frame = pd.DataFrame({f"x{i}": labels + rng.standard_normal(n) for i in range(2)})
    return frame, labels


def audited(numbers: np.ndarray, truth: bool, **options: object) -> AuditResult:
    frame, labels = people(len(numbers))
    released = np.where(numbers < KEEP, labels, 1 - labels)
    table = frame.assign(label=released)
    keywords = QUICK | {"truth": labels if truth else None, "mechanism": CLAIM} | options
    return ldpaudit.audit(table, **keywords)  # type: ignore[arg-type]


def check(result: AuditResult) -> str:
    return next(check.verdict for check in result.checks if check.id == "guessable-seed")


@pytest.mark.parametrize("truth", [True, False])
def test_a_guessed_seed_is_a_violation(truth: bool) -> None:
    result = audited(np.random.default_rng(42).random(6000), truth)
    # Without true labels these may be what was drawn with the seed, as in simulated data.
    assert result.verdict == check(result) == ("fail" if truth else "inconclusive")
    [warning] = [note.text for note in result.notes if note.audit == "seeds"]
    assert "numpy.random.default_rng" in warning
    assert "42" not in warning
    estimate = result.estimate("seeds.p_value")
    assert estimate is not None
    assert estimate.value < 1e-9


@pytest.mark.parametrize("truth", [True, False])
def test_honest_noise_passes(truth: bool) -> None:
    result = audited(np.random.default_rng(2**100).random(6000), truth)
    assert check(result) == "pass"
    assert result.verdict != "fail"


@pytest.mark.parametrize("truth", [True, False])
def test_true_labels_simulated_with_a_seed_accuse_nobody(truth: bool) -> None:
    labels = (np.random.default_rng(0).random(6000) < 0.3).astype(int)
    honest = np.random.default_rng(2**100).random(6000) < KEEP
    table = pd.DataFrame({"x": labels + np.random.default_rng(2**99).standard_normal(6000)})
    table["label"] = np.where(honest, labels, 1 - labels)
    keywords = QUICK | {"truth": labels if truth else None, "mechanism": CLAIM}
    result = ldpaudit.audit(table, **keywords)  # type: ignore[arg-type]
    assert check(result) == ("pass" if truth else "inconclusive")


def test_the_check_takes_no_level_from_the_others() -> None:
    only = ("mechanism", "power", "seeds")
    result = audited(np.random.default_rng(2**100).random(6000), True, only=only)
    levels = {check.id: check.confidence for check in result.checks}
    assert levels["claimed-epsilon"] == pytest.approx(0.95)
    assert levels["guessable-seed"] == pytest.approx(1 - 1e-9)


@pytest.mark.validate
def test_seconds_of_a_day_are_tried_on_request() -> None:
    numbers = np.random.default_rng(1_767_312_345).random(500)
    assert check(audited(numbers, True)) == "pass"
    assert check(audited(numbers, True, seeds_tried=0, made_on=date(2026, 1, 2))) == "fail"


def test_more_seeds_can_be_tried() -> None:
    numbers = np.random.RandomState(700).rand(2000)
    assert check(audited(numbers, True)) == "pass"
    assert check(audited(numbers, True, seeds_tried=800)) == "fail"


def test_several_classes_and_noise_of_this_package() -> None:
    frame, _ = people()
    codes = np.random.default_rng(1).integers(0, 4, len(frame)).astype(np.int32)
    mechanism = RandomizedResponse.from_epsilon(tuple("abcd"), 1.0)
    released = mechanism.sample(codes, np.random.default_rng(7))
    table = frame.assign(label=np.array(list("abcd"))[released])
    truth = np.array(list("abcd"))[codes]
    assert check(ldpaudit.audit(table, truth=truth, mechanism=CLAIM, **QUICK)) == "fail"  # type: ignore[arg-type]


def test_numeric_labels_with_noise_of_a_seed() -> None:
    frame, _ = people(3000)
    labels = np.random.default_rng(1).integers(0, 21, 3000)
    # numpy turns one uniform number into each Laplace number.
    noise = np.rint(np.random.RandomState(1).laplace(0, 20, 3000)).astype(int)
    claim = {"name": "discrete-laplace", "low": 0, "high": 20, "step": 1, "epsilon": 1.0}
    table = frame.assign(label=labels + noise)
    assert check(ldpaudit.audit(table, truth=labels, mechanism=claim, **QUICK)) == "fail"  # type: ignore[arg-type]


def test_bad_numbers_of_seeds_are_refused() -> None:
    with pytest.raises(InputError, match=re.escape("Got -1 instead")):
        audited(np.zeros(200), True, seeds_tried=-1)
