"""Rows with equal values, of different people, that have one label."""

import numpy as np

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
