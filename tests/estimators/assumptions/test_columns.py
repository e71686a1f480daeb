"""Columns that go with released labels, with and without true labels."""

import numpy as np
import pytest
from worlds import feature_table

from ldpaudit.estimators.assumptions.afterwards import Signals, looked_at
from ldpaudit.estimators.assumptions.columns import (
    Columns,
    Halves,
    LabelledRows,
    dependence,
    derived_columns,
    label_sides,
    sampled,
)
from ldpaudit.release import FloatArray


@pytest.mark.parametrize(("width", "most"), [(0, 50_000), (100, 15_000), (5_000, 4_000)])
def test_rows_are_sampled_so_that_a_model_is_soon_fitted(width: int, most: int) -> None:
    rows = np.arange(60_000)
    some = sampled(rows, width, np.random.default_rng(0))
    assert len(some) == most
    assert (np.diff(some) > 0).all()
    assert sampled(rows[:most], width, np.random.default_rng(0)) is not None
    assert (sampled(rows[:most], width, np.random.default_rng(0)) == rows[:most]).all()


KEEP = np.e / (1 + np.e)


def rows(seed: int, *, steered: bool = False, extra: str = "", n: int = 4000) -> LabelledRows:
    """Two features, an age, its decade; the released label follows age where it is steered."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(np.int32)
    x, age = truth[:, None] + rng.standard_normal((n, 2)), rng.integers(18, 95, n)
    flips = rng.random(n) > KEEP
    if steered:
        flips &= age <= 75
    released = np.where(flips, 1 - truth, truth).astype(np.int32)
    made = {
        "code": [released],
        "score": [2 * released + rng.standard_normal(n)],
        "weight": [1 / np.bincount(released)[released]],
        "two": [released, 2 * released + rng.standard_normal(n)],
    }
    columns = [x[:, 0], x[:, 1], age, age // 10, *made.get(extra, [])]
    numbers = np.stack(columns, axis=1).astype(np.float32)
    features = feature_table(numbers)
    order = rng.permutation(n)
    halves = Halves(order[: n // 2], order[n // 2 :])
    sides = label_sides(truth, released, same_labels=True)
    return LabelledRows(features, truth, released, sides, halves, seed)


def found(labelled: LabelledRows) -> tuple[int, ...]:
    return derived_columns(labelled, dependence(labelled).suspects())


def test_an_honest_release_is_not_called_dependent() -> None:
    """P(p ≤ 0.3) ≤ 0.3: of 20 draws more than 15 have a chance of 1e-5."""
    assert sum(dependence(rows(seed, n=600)).p_value <= 0.3 for seed in range(20)) <= 15


def test_of_many_columns_the_clearest_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    released = rng.integers(0, 2, 300).astype(np.int32)
    numbers = rng.normal(size=(300, 6))
    numbers[:, [1, 4]] += 2 * released[:, None]
    assert looked_at(feature_table(numbers), released, 6).tolist() == list(range(6))
    assert sorted(looked_at(feature_table(numbers), released, 2).tolist()) == [1, 4]


def made(scores: FloatArray, side: FloatArray, n: int) -> Signals:
    halves = Halves(np.arange(0, n, 2), np.arange(1, n, 2))
    codes = side.astype(np.int32)
    return Signals(feature_table(scores), codes, codes, halves, scores, 0)


def levels(surest: float, others: float, n: int = 4_000) -> bool:
    """Ask it of a score whose surest rows, and the next ones, are right so often."""
    rng = np.random.default_rng(1)
    size = np.linspace(1, 0, n)
    rate = np.where(np.arange(n) < 0.3 * n, surest, np.where(np.arange(n) < 0.6 * n, others, 0.5))
    side = np.arange(n) % 2
    right = np.zeros(n, bool)
    for part in np.split(np.arange(n), [int(0.3 * n), int(0.6 * n)]):
        right[rng.permutation(part)[: round(rate[part[0]] * len(part))]] = True
    score = np.where(right == (side == 1), 1.0, -1.0) * (0.01 + size)
    order = rng.permutation(n)
    return made(score[order, None], side[order], n).levels_off(0)


@pytest.mark.parametrize(
    ("surest", "others", "expected"),
    [
        (0.80, 0.80, True),
        (0.84, 0.80, True),  # A gap of 0.27 nats, two standard errors of 0.21 above it: below 0.5.
        (0.86, 0.80, False),  # 0.43 and 0.22.
        (0.95, 0.80, False),
        (0.70, 0.90, True),
        (0.965, 0.965, True),
        (0.975, 0.975, False),  # As good as determined.
    ],
)
def test_a_natural_columns_surest_rows_are_no_surer(
    surest: float, others: float, expected: bool
) -> None:
    assert levels(surest, others) is expected


@pytest.mark.parametrize(
    ("seed", "steered", "extra", "expected"),
    [
        (1, False, "code", {4}),
        (1, False, "score", {4}),
        (1, False, "weight", {4}),
        (2, False, "two", {4, 5}),
        (3, True, "", set()),
        (4, True, "code", {4}),
    ],
)
def test_columns_of_the_released_label_are_derived_and_those_of_the_channel_are_not(
    seed: int, steered: bool, extra: str, expected: set[int]
) -> None:
    labelled = rows(seed, steered=steered, extra=extra)
    first = dependence(labelled)
    assert first.p_value < 1e-6
    assert set(found(labelled)) == expected
    left = dependence(labelled, tuple(expected)).p_value
    assert (left < 1e-6) if steered else (left > 0.05)
    if not extra:
        assert set(first.suspects()) == {2, 3}


@pytest.mark.parametrize("width", [0, 1])
@pytest.mark.parametrize("known", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1]])
def test_where_nothing_can_be_learnt_odds_are_those_of_all_rows(
    width: int, known: list[int]
) -> None:
    if width and 0 < sum(known) < 4:
        return
    columns = Columns.of(feature_table(np.arange(8.0)[:, None])).only(range(width))
    halves = Halves(np.arange(4), np.arange(4, 8))
    odds = columns.log_odds(np.array([*known, 0, 0, 0, 0], np.int32), halves, 0)
    share = (sum(known) + 0.5) / 5
    assert odds == pytest.approx(4 * [np.log(share / (1 - share))])
