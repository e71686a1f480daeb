"""Paired differences of advantages and of numeric guesses: they hold, and they find something."""

from typing import Any

import numpy as np
import pytest
from estimators.intervals.test_paired import ALPHA, allowed, guesses

from ldpaudit.audits.held_out_guesses import NOT_ASKED, HeldOutGuesses
from ldpaudit.commands.compare.differences.numeric import _Pairs
from ldpaudit.commands.compare.differences.pairing import (
    REFERENCE,
    accuracy_folds,
    advantage_folds,
    mirrored,
    number_folds,
)
from ldpaudit.estimators.intervals.paired import best_interval, paired_interval


def recorded(n: int, **right: np.ndarray) -> HeldOutGuesses:
    found, rows = HeldOutGuesses(), np.arange(n)
    halves = (rows % 2).astype(np.int32)
    for name, values in right.items():
        found.record(name.replace("_", "-"), rows, values, halves)
    return found


def valued(name: str, measure: str, values: np.ndarray) -> HeldOutGuesses:
    found, rows = HeldOutGuesses(), np.arange(len(values))
    found.record_values(name, rows, {measure: values}, (rows % 2).astype(np.int32))
    return found


def test_rows_that_were_not_asked_about_are_left_out() -> None:
    a = recorded(8, x=np.array([1, 1, 0, 0, 1, 1, 0, 0], dtype=bool))
    b = recorded(8, x=np.array([1, 0, 1, 0, 1, 0, 1, 0], dtype=bool))
    folds = accuracy_folds(a, "x", b, "x")
    assert [part.tolist() for part in folds.parts] == [[0, 1, 0, 1], [-1, 0, -1, 0]]
    assert folds.mean() == 0
    b.outcomes["x"][6:] = NOT_ASKED
    folds = accuracy_folds(a, "x", b, "x")
    assert folds.n == 6
    assert folds.mean() == pytest.approx(3 / 6 - 4 / 6)


def test_an_advantage_is_held_against_each_releases_own_features() -> None:
    own = {"x": np.array([1, 1, 0, 0], dtype=bool), "features_only": np.array([1, 0, 1, 0]) > 0}
    other = {"x": np.array([1, 0, 0, 1], dtype=bool), "features_only": np.array([0, 1, 0, 0]) > 0}
    folds = advantage_folds(recorded(4, **own), "x", recorded(4, **other), "x")
    assert folds.reach == 2.0
    # b: 1, −1, 0, 1 on the four rows; a: 0, 1, −1, 0.
    assert np.concatenate(folds.parts).tolist() == [1, 1, -2, 1]


def advantages(rng: np.random.Generator, n: int, shares: list[float]) -> Any:
    """Attack and features of two releases with given shares of right guesses."""
    right = guesses(rng, n, shares)
    return (
        recorded(n, x=right[0], features_only=right[1]),
        recorded(n, x=right[2], features_only=right[3]),
    )


SHARES = [0.92, 0.86, 0.89, 0.79]
"""Accuracy falls by 0.03, the advantage rises by 0.04."""


@pytest.mark.parametrize("shares", [SHARES, [0.9, 0.8, 0.9, 0.8]])
def test_the_difference_of_advantages_holds(shares: list[float]) -> None:
    runs, truth = 20, shares[2] - shares[3] - shares[0] + shares[1]
    rng = np.random.default_rng(21)
    misses = 0
    for _ in range(runs):
        a, b = advantages(rng, 500, shares)
        found = paired_interval(advantage_folds(a, "x", b, "x"), ALPHA)
        misses += not found.low <= truth <= found.high
    assert misses <= allowed(runs, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize("n", [200, 2000])
def test_the_difference_of_advantages_holds_at_length(n: int) -> None:
    runs, rng, misses = 400, np.random.default_rng(22), 0
    for _ in range(runs):
        a, b = advantages(rng, n, SHARES)
        found = paired_interval(advantage_folds(a, "x", b, "x"), ALPHA)
        misses += not found.low <= 0.04 <= found.high
    assert misses <= allowed(runs, ALPHA)


def test_an_advantage_that_rises_while_accuracy_falls_is_found() -> None:
    a, b = advantages(np.random.default_rng(23), 12_000, SHARES)
    accuracy = paired_interval(accuracy_folds(a, "x", b, "x"), 0.025)
    advantage = paired_interval(advantage_folds(a, "x", b, "x"), 0.025)
    assert accuracy.high < 0 < advantage.low


def squares(rng: np.random.Generator, n: int, scales: list[float]) -> list[np.ndarray]:
    """Squared errors of guesses that share most of their error, in [0, 100]."""
    common = rng.standard_normal(n)
    return [
        np.minimum((scale * (0.9 * common + 0.44 * rng.standard_normal(n))) ** 2, 100.0)
        for scale in scales
    ]


def strongest(
    rng: np.random.Generator, n: int, a: list[float], b: list[float], alpha: float
) -> Any:
    """Return the interval of b's least mean squared error less a's."""
    found = squares(rng, n, [*a, *b])
    sides = []
    for part in (found[: len(a)], found[len(a) :]):
        both = HeldOutGuesses()
        for i, values in enumerate(part):
            both.values |= valued(str(i), "mse", values).values
        both.halves = (np.arange(n) % 2).astype(np.int32)
        sides.append((both, {str(i): float(v.mean()) for i, v in enumerate(part)}))
    pair = _Pairs(sides[0][0], sides[1][0], "mse", 100.0)
    return pair.best(sides[0][1], sides[1][1], alpha)


@pytest.mark.parametrize(("a", "b"), [([1.0, 1.2], [1.0, 1.0]), ([1.0], [0.7, 1.5, 2.0])])
def test_the_difference_of_the_least_errors_holds(a: list[float], b: list[float]) -> None:
    runs, scale = 16, 0.9**2 + 0.44**2
    truth = scale * (min(b) ** 2 - min(a) ** 2)
    rng = np.random.default_rng(24)
    misses = 0
    for _ in range(runs):
        found = strongest(rng, 400, a, b, ALPHA)
        misses += not found.low <= truth <= found.high
        assert found.low <= found.value <= found.high
    assert misses <= allowed(runs, ALPHA)


def test_a_paired_error_is_found_where_two_intervals_find_nothing() -> None:
    rng = np.random.default_rng(25)
    found = strongest(rng, 6000, [1.0], [1.15], 0.05)
    assert 0 < found.low < found.high
    ours, theirs = squares(np.random.default_rng(25), 6000, [1.0, 1.15])
    alone = [
        paired_interval(
            number_folds(
                valued("z", "mse", np.zeros(6000)), "z.mse", valued("z", "mse", values), "z.mse",
                100.0,
            ),
            0.025,
        )
        for values in (ours, theirs)
    ]  # fmt: skip
    assert alone[1].low < alone[0].high


def test_guesses_within_a_tolerance_are_counted() -> None:
    near = [np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, np.nan])]
    a, b = (valued("z", "within_5", values) for values in near)
    folds = number_folds(a, "z.within_5", b, "z.within_5", 1.0)
    assert [part.tolist() for part in folds.parts] == [[0, 1], [-1]]
    assert mirrored(folds).mean() == -folds.mean()


def test_the_strongest_is_chosen_at_a_cost() -> None:
    rng = np.random.default_rng(26)
    right = guesses(rng, 4000, [0.8, 0.8, 0.8, 0.8])
    a = recorded(4000, x=right[0], **{REFERENCE: right[1]})
    b = recorded(4000, x=right[2], y=right[3], **{REFERENCE: right[1]})
    one = paired_interval(accuracy_folds(a, "x", b, "x"), 0.05)
    best = best_interval(
        lambda i, j: accuracy_folds(a, i, b, j), {"x": 0.8}, {"x": 0.81, "y": 0.8}, 0.05
    )
    assert best.low < one.low
