"""Differences of attacks, paired and not: they hold, and they find something."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from estimators.worlds import allowed, guesses

from ldpaudit.audits.interface import NOT_ASKED, HeldOutGuesses
from ldpaudit.commands.compare.differences import REFERENCE, _best_of, best_counted, row_folds
from ldpaudit.estimators.intervals.bounded_mean import paired_interval
from ldpaudit.result import Estimate, Score

ALPHA = 0.1


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
    folds = row_folds(a, b, "x", "x", "accuracy")
    assert [part.tolist() for part in folds.parts] == [[0, 1, 0, 1], [-1, 0, -1, 0]]
    assert folds.mean() == 0
    b.outcomes["x"][6:] = NOT_ASKED
    folds = row_folds(a, b, "x", "x", "accuracy")
    assert folds.n == 6
    assert folds.mean() == pytest.approx(3 / 6 - 4 / 6)


def test_an_advantage_is_held_against_each_releases_own_features() -> None:
    own = {"x": np.array([1, 1, 0, 0], dtype=bool), "features_only": np.array([1, 0, 1, 0]) > 0}
    other = {"x": np.array([1, 0, 0, 1], dtype=bool), "features_only": np.array([0, 1, 0, 0]) > 0}
    folds = row_folds(recorded(4, **own), recorded(4, **other), "x", "x", "advantage", 2.0)
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
        found = paired_interval(row_folds(a, b, "x", "x", "advantage", 2.0), ALPHA)
        misses += not found.low <= truth <= found.high
    assert misses <= allowed(runs, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize("n", [200, 2000])
def test_the_difference_of_advantages_holds_at_length(n: int) -> None:
    runs, rng, misses = 400, np.random.default_rng(22), 0
    for _ in range(runs):
        a, b = advantages(rng, n, SHARES)
        found = paired_interval(row_folds(a, b, "x", "x", "advantage", 2.0), ALPHA)
        misses += not found.low <= 0.04 <= found.high
    assert misses <= allowed(runs, ALPHA)


def test_an_advantage_that_rises_while_accuracy_falls_is_found() -> None:
    a, b = advantages(np.random.default_rng(23), 12_000, SHARES)
    accuracy = paired_interval(row_folds(a, b, "x", "x", "accuracy"), 0.025)
    advantage = paired_interval(row_folds(a, b, "x", "x", "advantage", 2.0), 0.025)
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
    (ours, known), (theirs, other) = sides
    return _best_of(ours, theirs, "mse", known, other, 100.0, alpha)


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
    none = valued("z", "mse", np.zeros(6000))
    alone = [
        paired_interval(row_folds(none, valued("z", "mse", one), "z", "z", "mse", 100.0), 0.025)
        for one in (ours, theirs)
    ]
    assert alone[1].low < alone[0].high


def test_guesses_within_a_tolerance_are_counted() -> None:
    near = [np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, np.nan])]
    a, b = (valued("z", "within_5", values) for values in near)
    folds = row_folds(a, b, "z", "z", "within_5")
    assert [part.tolist() for part in folds.parts] == [[0, 1], [-1]]
    assert row_folds(a, b, "z", "z", "within_5", sign=-1.0).mean() == -folds.mean()


def test_the_strongest_is_chosen_at_a_cost() -> None:
    rng = np.random.default_rng(26)
    right = guesses(rng, 4000, [0.8, 0.8, 0.8, 0.8])
    a = recorded(4000, x=right[0], **{REFERENCE: right[1]})
    b = recorded(4000, x=right[2], y=right[3], **{REFERENCE: right[1]})
    one = paired_interval(row_folds(a, b, "x", "x", "accuracy"), 0.05)
    best = _best_of(a, b, "accuracy", {"x": 0.8}, {"x": 0.81, "y": 0.8}, 1.0, 0.05)
    assert best.low < one.low


WHOLE = "bayes-whole-release"


@dataclass(frozen=True)
class Stored:
    """As much of a result as is looked at."""

    estimates: tuple[Estimate, ...]

    def estimate(self, identifier: str) -> Estimate | None:
        return next((e for e in self.estimates if e.id == identifier), None)


def scored_by(name: str, measure: str, **fields: Any) -> Estimate:
    score = Score(subject=name, measure=measure, row=name, column=measure)
    given = {"id": f"attack.{name}.{measure}", "section": "label-inference", "score": score}
    return Estimate.model_validate(given | fields)


def stored(**right: int) -> Any:
    found = []
    for name, count in right.items():
        given: dict[str, Any] = {"unit": "proportion", "n": 1000, "method": "counts"}
        interval = {
            "kind": "certified",
            "level": 0.95,
            "side": "two-sided",
            "low": 0.0,
            "high": 1.0,
        }
        scored = partial(scored_by, name)
        found.append(scored("accuracy", value=count / 1000, count=count, **given, **interval))
        found.append(scored("multiplicative_advantage", value=0.5, **given, **interval))
        if name != WHOLE:
            found.append(scored("in_sample.accuracy", kind="estimated", value=0.5, **given))
    return Stored(tuple(found))


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        ({"bayes": 700, WHOLE: 750}, {"bayes": 800, WHOLE: 790}, 0.05),
        ({"bayes": 760, WHOLE: 750}, {"bayes": 800}, 0.04),  # asked once, and not the strongest
        ({"bayes": 700, WHOLE: 750}, {"bayes": 800}, None),
    ],
)
def test_an_attack_that_one_result_lacks_decides_nothing(
    a: dict[str, int], b: dict[str, int], change: float | None
) -> None:
    found = best_counted(stored(**a), stored(**b), 0.05)
    if change is None:
        assert found is None
    else:
        assert found.value == pytest.approx(change)
        assert found.low < change < found.high
