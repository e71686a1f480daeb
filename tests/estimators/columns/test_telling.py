"""What one column tells of labels."""

import numpy as np
import pytest

from ldpaudit.arrays import FloatArray, IntArray
from ldpaudit.estimators import readable
from ldpaudit.estimators.readable import rows_to_scan, scan
from ldpaudit.estimators.telling import LIMIT, label_weights, told


def labels(n: int, k: int, seed: int) -> tuple[IntArray, np.random.Generator]:
    """Return balanced labels in random order."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, k, n).astype(np.int32), rng


@pytest.mark.parametrize("share", [0.6, 0.9, 0.99])
def test_the_share_is_what_the_column_tells(share: float) -> None:
    y, rng = labels(20_000, 2, 3)
    column = np.where(rng.random(len(y)) < share, y, 1 - y)
    found = told(column, label_weights(y, 2))
    assert found.share == pytest.approx(share, abs=0.015)  # 4 standard deviations.
    assert found.wrong == pytest.approx((1 - share) * len(y), abs=300)


@pytest.mark.parametrize("share", [0.6, 0.9, 0.99])
def test_the_share_is_found_through_a_channel(share: float) -> None:
    y, rng = labels(40_000, 2, 4)
    column = np.where(rng.random(len(y)) < share, y, 1 - y)
    found = told(column, noisy_weights(y, 1.0, rng))
    assert abs(found.share - share) < 4 * found.error
    assert found.error < 0.015


def noisy_weights(y: IntArray, epsilon: float, rng: np.random.Generator) -> FloatArray:
    """Return the rows of the inverse channel of binary randomized response."""
    kept = np.exp(epsilon) / (1 + np.exp(epsilon))
    released = np.where(rng.random(len(y)) < kept, y, 1 - y)
    channel = np.array([[kept, 1 - kept], [1 - kept, kept]])
    return np.asarray(np.linalg.inv(channel)[released])


@pytest.mark.parametrize("seed", range(5))
def test_no_column_of_noise_decides_by_chance(seed: int) -> None:
    y, rng = labels(3000, 3, seed)
    columns = [rng.normal(size=3000), rng.integers(0, 4, 3000), rng.permutation(3000)]
    columns.append(np.where(rng.random(3000) < 0.93, y, (y + 1) % 3))
    rows = rows_to_scan(3000, 4, 3, rng)
    found = scan(columns, rows, label_weights(y[rows], 3), y[rows])
    assert not found.deciding
    assert not found.lagged
    assert not found.flags
    assert 0.85 < found.best.share < LIMIT


@pytest.mark.parametrize("seed", range(4))
def test_noise_never_decides_through_a_channel(seed: int) -> None:
    y, rng = labels(3000, 2, seed)
    columns = [rng.normal(size=3000) for _ in range(10)]
    rows = rows_to_scan(3000, 10, 2, rng)
    found = scan(columns, rows, noisy_weights(y, 0.3, rng)[rows])
    assert not found.deciding
    assert not found.lagged


def test_each_planted_column_is_found() -> None:
    y, rng = labels(12_000, 3, 0)
    noise = rng.normal(size=len(y))
    rare = (y == 0).astype(float)
    finer = y * 40 + rng.integers(0, 40, len(y))
    columns = [noise, finer, np.roll(y, 2), rare, y + np.arange(12e3)]
    rows = rows_to_scan(len(y), 5, 3, rng)
    found = scan(columns, rows, label_weights(y[rows], 3), y[rows])
    assert found.deciding == (1, 4)
    assert found.lagged == ((2, 2),)
    assert found.flags == (3,)


def test_a_file_sorted_by_the_released_label_has_no_deciding_column() -> None:
    rng = np.random.default_rng(5)
    y = (rng.random(576) < 0.3).astype(np.int32)
    weights = noisy_weights(y, 3.0, rng)
    weights = weights[np.argsort(weights[:, 0], kind="stable")]
    ages = rng.integers(18, 96, 576).astype(np.float32)
    rows = rows_to_scan(576, 1, 2, rng)
    assert not scan([ages], rows, weights[rows]).deciding


def test_a_sample_of_rows_shows_columns_of_nearby_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable, "_MOST_LAGGED", 1_000)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 8_000).astype(np.int32)
        rows, mostly = rows_to_scan(8_000, 4, 2, rng), np.where(rng.random(8_000) < 0.9, y, 1 - y)
        columns = [np.roll(y, 2), rng.normal(size=8_000), np.roll(mostly, 1), np.roll(y, -3)]
        found = scan(columns, rows, label_weights(y[rows], 2), y[rows])
        assert (found.rows, found.lagged_rows) == (8_000, 1_000)
        # A column right in nine of ten rows is none that reveals nearly all labels.
        assert found.lagged == ((0, 2), (3, -3))


def test_small_columns_less_the_row_number_tell_nothing_where_rows_are_sorted_by_label() -> None:
    """The row's number just fails to tell 98 % of six labels; less a small column it may pass."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = np.sort(rng.integers(0, 6, 500)).astype(np.int32)
        rows = rng.permutation(500)
        few = rng.integers(0, 5, 500).astype(np.float32)
        odd = (np.arange(500) == seed).astype(np.float32)
        found = scan([few, odd], rows, label_weights(y[rows], 6), y[rows])
        assert found.deciding == found.lagged == ()
        assert found.position.share > 0.9
