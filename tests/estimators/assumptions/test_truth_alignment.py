"""True labels of other rows are recognised, and those of these rows never refused."""

import numpy as np
import pytest

from ldpaudit.estimators.assumptions.truth_alignment import truth_alignment


def response(k: int, epsilon: float) -> np.ndarray:
    odds = np.exp(epsilon)
    return (np.ones((k, k)) + (odds - 1) * np.eye(k)) / (odds + k - 1)


def drawn(truth: np.ndarray, channel: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    cumulated = channel.cumsum(axis=1)[truth]
    return (rng.random(len(truth))[:, None] > cumulated[:, :-1]).sum(axis=1)


def walk(n: int, stay: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """Labels that are often those of the row before."""
    new = rng.random(n) > stay
    values = rng.integers(k, size=n)
    return values[np.maximum.accumulate(np.where(new, np.arange(n), 0))]


@pytest.mark.parametrize("stay", [0.0, 0.9], ids=["independent", "like-the-row-before"])
@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 2])
def test_a_shift_is_named(shift: int, stay: float) -> None:
    rng = np.random.default_rng(7)
    truth = walk(3000, stay, 2, rng)
    released = drawn(truth, response(2, 1.0), rng)
    assert truth_alignment(np.roll(truth, shift), released, response(2, 1.0)) == shift


@pytest.mark.parametrize("k", [2, 5])
def test_other_rows_are_recognised(k: int) -> None:
    # Dependence by chance hides it in one draw of a hundred: nine of ten fail once in 1e12.
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.integers(k, size=3000)
        released = drawn(truth, response(k, 1.0), rng)
        found += truth_alignment(rng.permutation(truth), released, response(k, 1.0)) is None
    assert found >= 14


def test_a_release_that_follows_its_labels_is_never_refused() -> None:
    # Each draw is refused at most once in 1e9 where the claim holds.
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = walk(1500, 0.8, 3, rng)
        assert truth_alignment(truth, drawn(truth, response(3, 1.0), rng), response(3, 1.0)) == 0


@pytest.mark.parametrize("epsilon", [0.4, 3.0, 20.0])
def test_another_epsilon_is_no_other_order(epsilon: float) -> None:
    rng = np.random.default_rng(3)
    truth = walk(3000, 0.9, 2, rng)
    released = drawn(truth, response(2, epsilon), rng)
    assert truth_alignment(truth, released, response(2, 1.0)) == 0


def test_exchanged_labels_are_no_other_order() -> None:
    rng = np.random.default_rng(3)
    truth = walk(3000, 0.9, 2, rng)
    assert truth_alignment(truth, 1 - drawn(truth, response(2, 1.0), rng), response(2, 1.0)) == 0


def test_too_few_rows_decide_nothing() -> None:
    rng = np.random.default_rng(3)
    assert (
        truth_alignment(rng.integers(2, size=60), rng.integers(2, size=60), response(2, 1.0)) == 0
    )
