"""Right seeds are found; wrong ones stay within their level."""

import math

import numpy as np
import pytest

from ldpaudit.estimators.seeds.generators import GENERATORS
from ldpaudit.estimators.seeds.target import Target
from ldpaudit.estimators.seeds.trial import log_p_values, try_seeds
from ldpaudit.estimators.seeds.usual import other_seeds

KEEP = math.e / (1 + math.e)
NONE = np.empty(0, dtype=np.uint32)


def changed(numbers: np.ndarray, labels: np.ndarray, form: str) -> np.ndarray:
    """Return which of two labels are changed, by programs that read numbers in different ways."""
    if form == "keep":
        return numbers >= KEEP
    if form == "lambda":
        new = np.random.default_rng(5).integers(0, 2, len(labels))
        return (numbers < 2 * (1 - KEEP)) & (new != labels)
    return (numbers < np.where(labels == 1, KEEP, 1 - KEEP)) != (labels == 1)


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, "keep") for name in GENERATORS]
    + [(next(iter(GENERATORS)), form) for form in ("lambda", "inverse")],
)
def test_a_right_seed_is_found(name: str, form: str) -> None:
    labels = np.random.default_rng(0).integers(0, 2, 1500)
    numbers = GENERATORS[name](np.array([611], dtype=np.uint32), 1500)[:, 0]
    flips = changed(numbers, labels, form)
    targets = [Target(flips.astype(float), labels), Target((labels ^ flips).astype(float), labels)]
    evidence = try_seeds(targets, 700, NONE)
    assert (evidence.generator, evidence.seed, evidence.each_row) == (name, 611, False)
    assert evidence.log_p_value < math.log(1e-12)


@pytest.mark.parametrize("name", ["numpy.random.default_rng", "Python's random.seed"])
def test_a_seed_for_each_row_is_found(name: str) -> None:
    labels = np.random.default_rng(0).integers(0, 2, 1500)
    numbers = GENERATORS[name](np.arange(77, 1577, dtype=np.uint32), 1)[0]
    flips = changed(numbers, labels, "keep").astype(float)
    evidence = try_seeds([Target(flips, labels)], 700, NONE)
    assert (evidence.generator, evidence.seed, evidence.each_row) == (name, 77, True)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, 3.0])
def test_it_is_found_at_any_noise(epsilon: float) -> None:
    labels = np.random.default_rng(0).integers(0, 2, 20_000)
    numbers = np.random.default_rng(42).random(20_000)
    flips = (numbers >= math.exp(epsilon) / (1 + math.exp(epsilon))).astype(float)
    evidence = try_seeds([Target(flips, labels)], 700, NONE)
    assert evidence.seed == 42
    assert evidence.log_p_value < math.log(1e-12)


def test_dates_and_times_are_tried() -> None:
    from datetime import date

    assert 20240517 in other_seeds(100)
    assert 42 not in other_seeds(100)
    assert 1_767_312_345 not in other_seeds(100)
    assert 1_767_312_345 in other_seeds(100, date(2026, 1, 2))


@pytest.mark.parametrize("rate", [0.02, 0.27, 0.5])
def test_p_values_of_wrong_numbers_are_valid(rate: float) -> None:
    """For fixed numbers and fresh outcomes, P(p ≤ α) ≤ α, also for numbers that are not uniform."""
    rng = np.random.default_rng(7)
    strata = rng.integers(0, 2, 60)
    fixed = np.stack([rng.random(60), rng.random(60) ** 8, np.repeat([0.0, 1.0], 30)])
    draws = 1000
    values = (rng.random((draws, 60)) < np.where(strata == 1, rate, 1 - rate)).astype(float)
    for alpha in (0.05, 0.5):
        logs = np.array([log_p_values(Target(row, strata), fixed) for row in values])
        misses = (logs <= math.log(alpha)).mean(axis=0)
        assert (misses <= alpha).all()


def test_folds_are_tested_apart() -> None:
    rng = np.random.default_rng(3)
    numbers, folds = rng.random((1, 400)), np.repeat([0, 1], 200)
    values = np.where(folds == 0, 1 - numbers[0], 0.5)
    whole = log_p_values(Target(values, np.zeros(400, dtype=np.int64)), numbers)
    apart = log_p_values(Target(values, folds, folds), numbers)
    assert apart < whole < 0


@pytest.mark.validate
def test_honest_noise_is_never_called_guessable() -> None:
    """The corrected p-value falls below 0.05 in none of 60 honest releases (5 % would be 3)."""
    for draw in range(60):
        rng = np.random.default_rng([9, draw])
        labels = rng.integers(0, 2, 600)
        evidence = try_seeds([Target((rng.random(600) > KEEP).astype(float), labels)], 8192, NONE)
        assert evidence.p_value > 0.05


def test_the_variance_is_that_within_strata() -> None:
    target = Target(np.array([0.0, 1.0, 0.0, 0.2, 0.4]), np.array([0, 0, 0, 1, 1]))
    assert target.variance == pytest.approx((2 / 3 + 0.02) / 5)
