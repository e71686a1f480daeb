"""Derived columns are told from columns that the channel uses."""

import numpy as np
import pytest

from ldpaudit.estimators.assumptions.columns import Halves
from ldpaudit.estimators.assumptions.derived import (
    LabelledRows,
    dependence,
    derived_columns,
    label_sides,
)
from ldpaudit.release import FeatureTable

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
    features = FeatureTable(numbers, np.zeros((n, 0), np.int32), (), len(columns))
    order = rng.permutation(n)
    halves = Halves(order[: n // 2], order[n // 2 :])
    sides = label_sides(truth, released, same_labels=True)
    return LabelledRows(features, truth, released, sides, halves, seed)


def found(labelled: LabelledRows) -> tuple[int, ...]:
    return derived_columns(labelled, dependence(labelled).suspects())


def test_an_honest_release_is_not_called_dependent() -> None:
    """P(p ≤ 0.05) ≤ 0.05: of 30 draws more than 9 have a chance of 1e-6."""
    assert sum(dependence(rows(seed, n=1000)).p_value <= 0.05 for seed in range(30)) <= 9


@pytest.mark.parametrize("extra", ["code", "score", "weight"])
def test_a_column_of_the_released_label_is_derived(extra: str) -> None:
    labelled = rows(1, extra=extra)
    assert dependence(labelled).p_value < 1e-9
    assert found(labelled) == (4,)
    assert dependence(labelled, (4,)).p_value > 0.05


def test_two_derived_columns() -> None:
    assert set(found(rows(2, extra="two"))) == {4, 5}


def test_columns_that_steer_the_channel_are_not_derived() -> None:
    labelled = rows(3, steered=True)
    assert dependence(labelled).p_value < 1e-6
    assert set(dependence(labelled).suspects()) == {2, 3}
    assert found(labelled) == ()


def test_a_derived_column_beside_a_steered_channel() -> None:
    labelled = rows(4, steered=True, extra="code")
    assert found(labelled) == (4,)
    assert dependence(labelled, (4,)).p_value < 1e-6


def test_sides_of_many_labels_are_balanced() -> None:
    codes = np.repeat(np.arange(6), [50, 30, 10, 5, 3, 2]).astype(np.int32)
    truth, released = label_sides(codes, codes, same_labels=True)
    assert (truth == released).all()
    assert 0.4 <= released.mean() <= 0.6
