"""People of rare true classes are looked at like all others."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import AuditResult

QUICK = ("assumptions", "mechanism", "power")


def claimed(truth: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    mechanism = RandomizedResponse.from_epsilon((0, 1, 2), epsilon)
    return mechanism.sample(truth.astype(np.int32), rng)


def audited(
    truth: np.ndarray, released: np.ndarray, epsilon: float, **columns: np.ndarray
) -> AuditResult:
    frame = pd.DataFrame({**columns, "label": released})
    before = list(columns)
    return ldpaudit.audit(frame, truth, "rr", epsilon=epsilon, only=QUICK, threads=1, before=before)


def test_a_few_people_in_the_clear_are_not_published() -> None:
    """Nine honest people all keep their label once in 10,000 draws at ε = 0.1."""
    rare, rng = 9, np.random.default_rng(9)
    truth = rng.permutation(np.repeat([0, 1, 2], [3000, 2000 - rare, rare]))
    released = claimed(truth, 0.1, rng)
    released[truth == 2] = 2
    assert audited(truth, released, 0.1).decision != "publish"


@pytest.mark.parametrize("sizes", [[1300, 699, 1], [999, 1]])
def test_one_person_of_a_class_is_no_violation(sizes: list[int]) -> None:
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    result = audited(truth, claimed(truth, 1.0, rng), 1.0)
    assert result.verdict != "fail"
    assert result.release.truth


def test_a_label_that_a_large_class_never_gets_is_found_where_few_have_it() -> None:
    """Of two large classes one is never released as the small one: ε is infinite."""
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1, 2], [2500, 2500, 5])
    released = claimed(truth, 1.0, rng)
    released[(truth == 0) & (released == 2)] = 0
    assert audited(truth, released, 1.0).estimate("mechanism.epsilon_lower").value > 1.2


@pytest.mark.parametrize("people", [60, 90, 1000])
def test_a_class_that_is_released_as_it_is_is_a_violation(people: int) -> None:
    """Most rows are released as claimed, and no feature tells the class."""
    rng = np.random.default_rng(people)
    others = (3000 - people) // 2
    truth = rng.permutation(np.repeat([0, 1, 2], [others, 3000 - people - others, people]))
    released = claimed(truth, 1.0, rng)
    released[truth == 2] = 2
    result = audited(truth, released, 1.0, age=rng.normal(size=3000))
    assert result.decision == "do not publish"
    assert result.estimate("mechanism.epsilon_lower").value > 1.3


def test_a_leak_through_features_and_the_label_of_a_small_class_is_found() -> None:
    """Each label is released as claimed, the third only where a column goes along with it."""
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.repeat([0, 1, 2], [900, 900, 5]))
    column, n = rng.integers(0, 2, len(truth)), len(truth)
    keep, other = np.e / (np.e + 2), 1 / (np.e + 2)
    first = rng.random(n) < np.where(truth == 0, keep + other, 2 * other)
    third = np.where(truth == 0, 2 * other / (keep + other), 1.0)
    leaks = first & (column == truth) & (rng.random(n) < third)
    released = np.where(leaks, 2, np.where(first, 0, 1))
    assert audited(truth, released, 1.0, column=column).verdict == "fail"
