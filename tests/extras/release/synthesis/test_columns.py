import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.errors import InputError
from ldpaudit.extras.release.synthesis.columns import Columns, Encoded, Images, image_side

ROWS = 400


def mixed_table(rows: int = ROWS, seed: int = 0) -> pa.Table:
    """One column of every type that can be generated."""
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(rows)
    days = [
        datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 99, rows)
    ]
    times = pa.array(rng.integers(1_600_000_000, 1_700_000_000, rows), pa.timestamp("s"))
    holes = rng.random(rows) < 0.3
    town = rng.choice(["oslo", "rome", "bonn"], rows, p=[0.7, 0.2, 0.1])
    pixels = rng.integers(0, 256, (rows, 4)).astype(np.uint8)
    lists = [
        None if hole else list(row) for hole, row in zip(holes, real[:, None] + [0, 1], strict=True)
    ]
    return pa.table(
        {
            "real": pa.array(real),
            "float32 with holes": pa.array(real, pa.float32(), mask=holes),
            "nan": pa.array(np.where(holes, np.nan, real)),
            "null and nan": pa.array(np.where(holes, np.nan, real), mask=rng.random(rows) < 0.1),
            "whole": pa.array(rng.integers(-5, 60, rows), pa.int8()),
            "big": pa.array(rng.integers(2**62, 2**62 + 1000, rows)),
            "unsigned": pa.array(rng.integers(2**63, 2**64 - 1, rows, dtype=np.uint64)),
            "mostly zero": pa.array(
                np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 99999, rows))
            ),
            "date": pa.array(days),
            "time": times,
            "money": pa.array(
                [decimal.Decimal(int(v * 100)).scaleb(-2) for v in real], pa.decimal128(8, 2)
            ),
            "flag": pa.array(rng.random(rows) < 0.2),
            "town": pa.array(town, mask=holes),
            "dictionary": pa.array(town).dictionary_encode(),
            "binary": pa.array([t.encode() for t in town]),
            "nothing": pa.nulls(rows),
            "pixels": pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 4),
            "embedding": pa.array(lists, pa.list_(pa.float32())),
            "no list": pa.nulls(rows, pa.list_(pa.int8())),
            "no pixels": pa.nulls(rows, pa.list_(pa.int8(), 4)),
            "no number": pa.nulls(rows, pa.float32()),
        }
    )


def round_trip(table: pa.Table) -> pa.Table:
    columns = Columns.fit(table)
    rng = np.random.default_rng(1)
    return columns.decode(columns.encode(table, rng), rng)


def test_round_trip_gives_the_schema_and_the_values_back() -> None:
    table = mixed_table()
    back = round_trip(table)
    assert back.schema.equals(table.schema)
    back.validate(full=True)
    for name in ("whole", "mostly zero", "date", "flag", "town", "dictionary", "binary", "nothing"):
        assert back[name].to_pylist() == table[name].to_pylist(), name
    # 401 quantiles of 400 rows leave at most a rounding error; whole numbers stay exact.
    for name in ("real", "float32 with holes", "nan"):
        ours, theirs = (np.array(t[name].to_pylist(), dtype=float) for t in (back, table))
        np.testing.assert_allclose(ours, theirs, atol=0.02)
    assert back["float32 with holes"].null_count == table["float32 with holes"].null_count
    # Nothing is recognised by a null where true rows have a NaN.
    assert back["nan"].null_count == 0
    assert back["null and nan"].null_count == table["null and nan"].null_count
    nan = [np.isnan(t["null and nan"].drop_null().to_numpy()).sum() for t in (back, table)]
    assert nan[0] == nan[1] > 0
    for name in ("no list", "no pixels", "no number"):
        assert back[name].null_count == len(table), name
    assert back["embedding"].null_count == table["embedding"].null_count


def test_numbers_are_standard_normal_even_with_a_heavy_value() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(20_000) < 0.9, 0, rng.integers(1, 1000, 20_000))
    table = pa.table({"gain": values})
    numbers = Columns.fit(table).encode(table, rng).numbers[:, 0]
    # Standard errors are 0.007 and 0.005: seven of them.
    assert abs(numbers.mean()) < 0.05
    assert abs(numbers.std() - 1) < 0.035
    assert abs((numbers < 1.2816).mean() - 0.9) < 0.02


def test_any_coordinates_give_values_that_occur() -> None:
    table = mixed_table()
    columns = Columns.fit(table)
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, size, 999) for size in columns.sizes], axis=1)
    wild = 9 * rng.standard_normal((999, columns.quantiles.shape[1]))
    rows = Encoded(wild.astype(np.float32), codes.astype(np.int32), columns.sizes)
    made = columns.decode(rows, rng)
    made.validate(full=True)
    assert made.schema.equals(table.schema)
    for name in ("town", "dictionary", "flag", "binary", "whole", "mostly zero"):
        assert set(made[name].to_pylist()) <= set(table[name].to_pylist()), name
    for name in ("time", "date", "money"):
        seen = [value for value in table[name].to_pylist() if value is not None]
        found = made[name].to_pylist()
        assert min(seen) <= min(found), name
        assert max(found) <= max(seen), name


def test_rare_categories_share_a_code_and_keep_their_shares() -> None:
    values = [f"id{i % 300}" for i in range(30_000)] + ["common"] * 30_000
    table = pa.table({"id": values})
    columns = Columns.fit(table)
    assert columns.sizes == [101]
    rng = np.random.default_rng(3)
    back = columns.decode(columns.encode(table, rng), rng)
    assert sum(value == "common" for value in back["id"].to_pylist()) == 30_000
    rare = np.unique(back["id"].to_pylist(), return_counts=True)[1]
    assert len(rare) == 301
    # Rare ones have 100 rows each; a Poisson count strays by more than 70 with chance 1e-9.
    assert np.abs(np.sort(rare)[:-1] - 100).max() < 70


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1.0, np.inf, 2.0]), "must be finite"),
        (pa.array([[1.0], [1.0, 2.0], [3.0]]), "one length"),
        (pa.array([[1.0], [None], [3.0]]), "without missing entries"),
        (pa.array([{"a": 1}, {"a": 2}, {"a": 3}]), "cannot be generated"),
        (pa.array([["a"], ["b"], ["c"]]), "cannot be generated"),
    ],
)
def test_what_cannot_be_generated_is_refused(column: pa.Array, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Columns.fit(pa.table({"odd": column}))
    assert "Column 1" in str(caught.value)
    assert "odd" not in str(caught.value)


@given(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=30), st.integers(0, 99))
def test_whole_numbers_stay_in_their_range(values: list[int], seed: int) -> None:
    table = pa.table({"whole": pa.array(values, pa.int64())})
    columns = Columns.fit(table)
    rng = np.random.default_rng(seed)
    wild = (5 * rng.standard_normal((50, 1))).astype(np.float32)
    rows = Encoded(wild, np.zeros((50, 0), dtype=np.int32), [])
    made = columns.decode(rows, rng)["whole"].to_pylist()
    assert min(values) <= min(made)
    assert max(made) <= max(values)


def images(kind: pa.DataType, rows: int = 20, width: int = 64) -> pa.Table:
    pixels = np.random.default_rng(0).integers(-2, 3, rows * width)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
    return pa.table({"image": pa.ListArray.from_arrays(offsets, pa.array(pixels)).cast(kind)})


@pytest.mark.parametrize("inner", [pa.int8(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda inner: pa.list_(inner, 64)])
def test_round_trip_is_exact_where_pixels_have_few_values(kind: object, inner: pa.DataType) -> None:
    table = images(kind(inner))  # type: ignore[operator]
    codec = Images.fit(table, np.zeros(20, dtype=np.int32), 1)
    pixels = codec.encode(table)
    assert (pixels.min(), pixels.max()) == (-1, 1)
    assert codec.decode(pixels, np.zeros(20, dtype=np.int32)).equals(table)


def test_only_one_column_of_square_images_is_one() -> None:
    square = images(pa.list_(pa.float32()))
    assert image_side(square) == 8
    assert image_side(images(pa.list_(pa.float32()), width=65)) is None
    assert image_side(images(pa.list_(pa.float32()), width=49)) is None
    assert image_side(square.append_column("x", pa.array(range(20)))) is None
    assert image_side(pa.table({"x": [1.0, 2.0]})) is None
    assert image_side(pa.table({"x": pa.array([None, [1.0] * 64])})) is None
    with pytest.raises(InputError, match="one column of lists"):
        Images.fit(pa.table({"x": [1.0, 2.0]}), np.zeros(2, dtype=np.int32), 1)
