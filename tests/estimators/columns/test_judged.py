"""What a column tells, counted by hand."""

import numpy as np
import pytest

from ldpaudit.arrays import IntArray
from ldpaudit.estimators.columns import telling
from ldpaudit.estimators.columns.telling import Told, cells_of, label_weights, told


def counted(values: IntArray, labels: IntArray, k: int, *, between: bool) -> tuple[int, list[int]]:
    """Right guesses of the commonest label, and by label those of the commonest by share."""
    n, plain, balanced = len(labels), 0, [0] * k
    for half in (0, 1):
        learn = [i for i in range(n) if i % 2 == half]
        totals = [max(sum(labels[i] == c for i in learn), 1e-9) for c in range(k)]
        for row in (i for i in range(n) if i % 2 != half):
            seen = {values[i] for i in learn}
            value = values[row]
            if value not in seen:
                if not between:
                    continue
                value = max((v for v in seen if v < value), default=min(seen))
            counts = [sum(values[i] == value and labels[i] == c for i in learn) for c in range(k)]
            plain += int(np.argmax(counts)) == labels[row]
            guess = int(np.argmax([c / t for c, t in zip(counts, totals, strict=True)]))
            balanced[guess] += guess == labels[row]
    return plain, balanced


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("noise", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("k", [2, 4])
def test_the_share_is_that_of_a_loop_over_rows(k: int, noise: float, between: bool) -> None:
    rng = np.random.default_rng(int(100 * noise) + k)
    n = 240
    labels = rng.choice(k, n, p=np.array([0.8, *[0.2 / (k - 1)] * (k - 1)])).astype(np.int32)
    values = np.where(rng.random(n) < noise, rng.integers(0, 40, n), 10 * labels)
    plain, balanced = counted(values, labels, k, between=between)
    totals = np.bincount(labels, minlength=k)
    kept = totals >= 10
    shares = np.array(balanced)[kept] / totals[kept]
    expected = shares.mean()
    error = np.sqrt((shares * (1 - shares) / totals[kept]).sum()) / kept.sum()
    wrong = n - sum(balanced)
    majority = totals.max() / n
    if plain / n - majority >= 0.9 * (1 - majority) and plain / n > expected:
        expected, wrong = plain / n, n - plain
        error = np.sqrt(expected * (1 - expected) / n)
    found = told(values.astype(float) if between else values, label_weights(labels, k))
    assert found.share == pytest.approx(expected)
    assert found.error == pytest.approx(error)
    assert found.wrong == wrong


def test_accuracy_counts_where_it_is_no_merit_of_the_commonest_label() -> None:
    """Of 1,000 rows one in ten has the rare label; one column gets 9 rows wrong, all of it."""
    n = 1_000
    labels = (np.arange(n) % 20 < 2).astype(np.int32)
    values = labels.copy()
    values[np.flatnonzero(labels)[:9]] = 0
    found = told(values, label_weights(labels, 2))
    assert found.share == pytest.approx(0.991)
    assert found.error == pytest.approx(np.sqrt(0.991 * 0.009 / n))
    assert found.wrong == 9
    values[np.flatnonzero(labels)[:11]] = 0
    assert told(values, label_weights(labels, 2)).share == pytest.approx((1 + 89 / 100) / 2)


def test_less_than_two_labels_with_ten_rows_tell_nothing() -> None:
    labels = np.r_[np.zeros(30), np.ones(9)].astype(np.int32)
    assert told(labels, label_weights(labels, 2)) == Told(0.0, 0.0, 39)
    labels = np.r_[np.zeros(30), np.ones(10)].astype(np.int32)
    assert told(labels, label_weights(labels, 2)) == Told(1.0, 0.0, 0)


def test_a_column_that_tells_more_than_all_counts_as_telling_nothing() -> None:
    """Through an inverse channel weights exceed one, where the column is the released label."""
    released = np.tile([0, 1], 500).astype(np.int32)
    order = np.random.default_rng(0).permutation(1_000)
    inverse = np.linalg.inv(np.array([[0.7, 0.3], [0.3, 0.7]]))
    found = told(released[order], inverse[released[order]])
    assert found == Told(0.0, 0.0, 1_000, derived=True)


@pytest.mark.parametrize(("distinct", "cells"), [(8, 8), (9, 8), (80, 8)])
def test_numbers_of_many_values_are_put_into_bins_of_equal_size(distinct: int, cells: int) -> None:
    values = np.repeat(np.arange(distinct) / 2, 720 // distinct)
    codes, amount = cells_of(values, 8)
    assert amount == cells
    assert (np.diff(codes) >= 0).all()
    assert sorted(set(codes.tolist())) == list(range(cells))
    if distinct == 80:
        assert np.bincount(codes).tolist() == [90] * 8
    whole, amount = cells_of((2 * values).astype(np.int64), 8)
    assert amount == distinct
    assert (whole == 2 * values).all()


def test_cells_never_seen_take_the_guess_before() -> None:
    cells, weights = np.array([1, 1, 3]), label_weights(np.array([0, 0, 1], np.int32), 2)
    balanced, plain = telling._guesses(cells, 5, weights, between=True)
    assert balanced.tolist() == plain.tolist() == [0, 0, 0, 1, 1]
    balanced, plain = telling._guesses(cells, 5, weights, between=False)
    assert balanced.tolist() == plain.tolist() == [-1, 0, -1, 1, -1]
