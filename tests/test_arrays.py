"""Orders of numbers, counts of codes, and arrays that nobody can write to."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ldpaudit import arrays
from ldpaudit.arrays import code_counts, stable_order, unwriteable


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


ARRAYS = {
    "float32": np.ones((5, 3), np.float32),
    "float16": np.ones(5, np.float16),
    "bool": np.ones(5, bool),
    "strided": np.arange(12, dtype=np.int32)[::3],
    "reversed": np.arange(5)[::-1],
    "by column": np.asfortranarray(np.ones((4, 2))),
    "repeated": np.broadcast_to(np.float32(1), (5, 3)),
    "no columns": np.ones((5, 0), np.float32),
    "no rows": np.ones((0, 3)),
    "one number": np.array(3.0),
    "texts": np.array(["a", "bc"]),
    "objects": np.array(["a", None], dtype=object),
    "dates": np.arange(5).astype("datetime64[s]"),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_nobody_can_write_to_what_is_handed_out(array: npt.NDArray[Any]) -> None:
    held = unwriteable(array)
    assert (held.dtype, held.shape) == (array.dtype, array.shape)
    assert np.array_equal(held, array)
    assert not array.size or (np.shares_memory(held, array) and held.strides == array.strides)
    for one in (held, held.view(), held[...], unwriteable(held)):
        with pytest.raises(ValueError, match="WRITEABLE"):
            one.flags.writeable = True
        with pytest.raises(ValueError, match="read-only"):
            one[...] = one
