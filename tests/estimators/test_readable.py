"""Rows with equal values, of different people, that have one label."""

import numpy as np
import pytest
from worlds import feature_table

from ldpaudit.estimators.readable import Labels, readable
from ldpaudit.estimators.representations import represent
from ldpaudit.estimators.row_order import written_in_ties
from ldpaudit.estimators.telling import repeated_alike

N = 6_000


def world(seed: int, *, by_class: bool) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return numbers standardised by class or together, labels, and another column."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(N) < 0.45).astype(np.int32)
    values = rng.integers(0, 3_000, N).astype(np.float64)
    for label in (0, 1):
        rows = labels == label if by_class else slice(None)
        values[rows] = (values[rows] - values[rows].mean()) / values[rows].std()
    return values.astype(np.float32), labels, [rng.random(N).astype(np.float32)]


def test_numbers_standardised_by_class_are_found() -> None:
    for seed in range(5):
        values, labels, others = world(seed, by_class=True)
        share, purity = repeated_alike(values, labels, others)
        assert share > 0.5
        assert 0.98 <= purity <= 1.0


def test_other_numbers_are_not() -> None:
    for seed in range(20):
        values, labels, others = world(seed, by_class=False)
        assert repeated_alike(values, labels, others) == (0.0, 0.0)


def test_rows_of_one_person_do_not_count() -> None:
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(N // 3), 3)
    weight, height = (rng.random(N // 3).astype(np.float32)[person] for _ in range(2))
    labels = (rng.random(N // 3) < 0.5).astype(np.int32)[person]
    assert repeated_alike(weight, labels)[0] == 1.0
    assert repeated_alike(weight, labels, [height]) == (0.0, 0.0)


def parts(rng: np.random.Generator, labels: np.ndarray, kind: str) -> np.ndarray:
    """Return three numbers whose sum decides the label: by its size, or by its last digit."""
    parts = rng.integers(0, 1_000, (3, N))
    if kind == "size":
        parts[2] = 1_500 + 10 * labels + rng.integers(0, 10, N) - parts[0] - parts[1]
    else:
        parts[2] += (parts.sum(axis=0) + labels) % 2
    return parts.T.astype(np.float64)


@pytest.mark.parametrize("kind", ["size", "digit"])
@pytest.mark.parametrize("true", [True, False])
def test_sums_of_three_columns_are_read(kind: str, true: bool) -> None:
    """Of true labels everybody is read, of others' labels nobody."""
    rng = np.random.default_rng(7)
    labels = (rng.random(N) < 0.4).astype(np.int32)
    released = np.where(rng.random(N) < 0.73, labels, 1 - labels).astype(np.int32)
    told = labels if true else rng.permutation(labels)
    features = feature_table(np.column_stack([parts(rng, told, kind), rng.normal(size=(N, 2))]))
    rows = rng.permutation(N)
    found = readable(represent(features, rows), Labels(labels[rows], released[rows]), rng)
    assert max((one.share for one in found), default=0.0) == float(true)


@pytest.mark.parametrize("written", [False, True])
def test_rows_without_noise_are_told_from_columns_that_hold_labels(written: bool) -> None:
    """Where a column is large either its rows are released as they are, or it holds the label."""
    rng = np.random.default_rng(11)
    labels = rng.integers(0, 3, N).astype(np.int32)
    other = (labels + rng.integers(1, 3, N)) % 3
    released = np.where(rng.random(N) < 0.58, labels, other).astype(np.int32)
    columns = rng.normal(size=(N, 3))
    tail = columns[:, 1] > 1.0
    if written:
        columns[tail, 1] = 10 * labels[tail] + rng.random(int(tail.sum()))
    else:
        released[tail] = labels[tail]
    rows = rng.permutation(N)
    known = Labels(labels[rows], released[rows])
    found = readable(represent(feature_table(columns), rows), known, rng)
    assert max(one.share for one in found) > 0.03
    assert {one.by_released for one in found if one.notable} == {not written}


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("by", ["true", "released", "nothing"])
def test_labels_written_in_ties_of_an_order(down: bool, by: str) -> None:
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 3, N).astype(np.int32)
    released = np.where(rng.random(N) < 0.6, labels, (labels + 1) % 3).astype(np.int32)
    column = rng.integers(0, N // 2, N).astype(np.float32)
    last = {"true": -labels, "released": released, "nothing": rng.random(N)}[by]
    order = np.lexsort((last, -column if down else column))
    share, p_value = written_in_ties([column[order]], labels[order], released[order])
    assert (share > 0.05, p_value < 1e-9) == ((True, True) if by == "true" else (False, False))


def test_the_p_value_of_ties_is_for_each_two_labels_that_meet() -> None:
    """Two of three labels meet, 60 times one way round: 2 ways, at a chance of one half each."""
    labels = np.tile([0, 1], 60).astype(np.int32)
    labels = np.append(labels, 2).astype(np.int32)
    column = np.append(np.repeat(np.arange(60), 2), 99)
    share, p_value = written_in_ties([column], labels, np.zeros(121, dtype=np.int32))
    assert share == pytest.approx(2 * 60 / 121)
    assert p_value == pytest.approx(2 * 0.5**60)
