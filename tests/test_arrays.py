"""Orders of numbers, and counts of codes."""

from typing import Any

import numpy as np
import pytest

from ldpaudit import arrays
from ldpaudit.arrays import code_counts, stable_order


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "float32", "float64"])
def test_the_order_is_the_stable_one(kind: Any) -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(5000) * 10.0 ** rng.integers(-40, 38, 5000)
    values[::3] = np.round(rng.standard_normal(len(values[::3])))
    if kind == "float32":
        values[::7], values[1::11], values[::13] = np.nan, -0.0, 0.0
        values[::17], values[::19] = np.inf, -np.inf
    else:
        values = np.round(rng.standard_normal(5000) * 70_000)
    values = np.abs(values) if kind == "uint32" else values
    numbers = values.astype(kind)
    numbers[5:50:5] *= -1 if kind.startswith("float") else 1  # What is missing, with a sign.
    assert np.array_equal(stable_order(numbers), np.argsort(numbers, kind="stable"))
    assert len(stable_order(numbers[:0])) == 0


def test_codes_are_counted_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_COUNTED", 7)
    codes = np.random.default_rng(1).integers(0, 4, 31, dtype=np.int32)
    counts = code_counts(codes, 6)
    assert counts.tolist() == np.bincount(codes, minlength=6).tolist()
    assert counts.dtype == np.int64
    assert code_counts(codes[:0], 3).tolist() == [0, 0, 0]
