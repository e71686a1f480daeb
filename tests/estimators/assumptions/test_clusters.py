"""Groups of rows are those that comparing all pairs gives."""

import numpy as np
from worlds import feature_table

from ldpaudit.estimators.assumptions.clusters import (
    equal_rows,
    merged,
    one_of_each,
    partly_equal_rows,
)
from ldpaudit.release import IndexArray


def same_groups(one: IndexArray, other: IndexArray) -> bool:
    return bool(((one[:, None] == one) == (other[:, None] == other)).all())


def test_equal_rows_have_one_code() -> None:
    rng = np.random.default_rng(0)
    numbers, codes = rng.integers(0, 3, (60, 2)) * 1.0, rng.integers(-1, 2, (60, 2))
    numbers[:5, 0] = np.nan
    numbers[5:8, 1] = -0.0
    whole = np.c_[np.nan_to_num(numbers, nan=9), codes]
    expected = np.unique(whole, axis=0, return_inverse=True)[1].ravel()
    assert same_groups(equal_rows(feature_table(numbers, codes)), expected)
    assert equal_rows(feature_table(np.zeros((3, 0)))).tolist() == [0, 0, 0]


def test_groupings_are_merged_through_others() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 30, 40), rng.integers(0, 30, 40)
    together = (one[:, None] == one) | (other[:, None] == other)
    for _ in range(40):
        together = together @ together
    assert ((merged(one, other)[:, None] == merged(one, other)) == together).all()


def test_one_row_of_each_cluster_is_drawn() -> None:
    codes = np.array([3, 1, 1, 3, 0, 3])
    drawn = [one_of_each(codes, np.random.default_rng(s)) for s in range(200)]
    assert all((np.diff(rows) > 0).all() and len(rows) == 3 for rows in drawn)
    assert all(sorted(codes[rows]) == [0, 1, 3] for rows in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=6)
    assert counts[4] == 200
    assert (np.abs(counts[[0, 3, 5]] - 200 / 3) < 33).all()  # 5 standard deviations.


def test_rows_of_people_are_found_by_the_columns_in_which_they_are_equal() -> None:
    rng = np.random.default_rng(4)
    person = rng.permutation(np.repeat(np.arange(100), 3))
    own = rng.integers(0, 12, (100, 4))[person]
    codes = np.c_[own, rng.integers(0, 12, (300, 3))]
    found = partly_equal_rows(feature_table(np.zeros((300, 0)), codes), rng)
    alike = person[:, None] == person
    together = [group[:, None] == group for _, group in found]
    best = max(np.mean(same[alike]) - np.mean(same[~alike]) for same in together)
    assert best > 0.95
    for columns, group in found:
        numbers = np.unique(codes[:, columns], axis=0, return_inverse=True)[1].ravel()
        several = np.bincount(group)[group] > 1
        assert same_groups(group[several], numbers[several])
    assert partly_equal_rows(feature_table(np.zeros((5, 0))), rng) == []
