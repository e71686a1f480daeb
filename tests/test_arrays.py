"""Orders of numbers."""

from typing import Any

import numpy as np
import pytest

from ldpaudit.arrays import stable_order


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
