"""Parts of a folder whose types differ: read as one table, or refused with part and column."""

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import read_whole
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError

ROWS = 60
LABEL = pa.array(["no", "yes"] * (ROWS // 2))
WHOLE, GAPS = pa.array(range(ROWS)), pa.array([None, *np.arange(1, ROWS) / 2])
WORDS = pa.array([f"w{i % 5}" for i in range(ROWS)])


def folder(path, *tables):
    path.mkdir()
    for place, table in enumerate(tables):
        pq.write_table(table, path / f"part-{place}.parquet")
    return path


ALIKE = {
    "whole and gaps": (WHOLE, GAPS, pa.float64()),
    "widths": (WHOLE.cast(pa.int32()), WHOLE, pa.int64()),
    "signs": (WHOLE.cast(pa.uint8()), WHOLE.cast(pa.int16()), pa.int64()),
    "floats": (GAPS.cast(pa.float32()), GAPS, pa.float64()),
    "nothing": (pa.nulls(ROWS), WHOLE, pa.int64()),
    "nothing last": (WORDS, pa.nulls(ROWS), pa.string()),
    "categories and text": (WORDS.dictionary_encode(), WORDS, pa.string()),
    "two categories": (
        WORDS.dictionary_encode(),
        pa.array(["w9"] * ROWS).dictionary_encode(),
        None,
    ),
    "long text": (WORDS.cast(pa.large_string()), WORDS, pa.large_string()),
    "units": (
        WHOLE.cast(pa.timestamp("ms")),
        WHOLE.cast(pa.timestamp("us")),
        pa.timestamp("us"),
    ),
    "decimals": (
        pa.array([decimal.Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(10, 2)),
        pa.array([decimal.Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(20, 4)),
        pa.decimal128(20, 4),
    ),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("case", ALIKE)
def test_parts_of_one_kind_are_one_table(case, turned, tmp_path):
    one, other, kind = ALIKE[case]
    pair = (other, one) if turned else (one, other)
    tables = [pa.table({"x": values, "label": LABEL}) for values in pair]
    source = open_table(folder(tmp_path / "parts", *tables))
    assert kind is None or source.schema.field("x").type == kind
    whole = read_whole(source)
    expected = [v for values in pair for v in values.to_pylist()]
    assert whole.column("x").to_pylist() == expected
    assert read_release(tmp_path / "parts").release.features.columns == 1


def test_the_order_of_columns_may_differ(tmp_path):
    one = pa.table({"x": WHOLE, "y": WORDS, "z": [[i, i] for i in range(ROWS)], "label": LABEL})
    place = folder(tmp_path / "parts", one, one.select(["label", "z", "y", "x"]))
    whole = read_whole(open_table(place))
    assert whole.to_pylist() == [*one.to_pylist(), *one.to_pylist()]
    assert len(read_release(place).release) == 2 * ROWS


OTHERS = {
    "text": (WORDS, "Part 2 of 2 .* holds text in column 1, and the parts before it int64"),
    "booleans": (pa.array([True] * ROWS), "holds bool in column 1"),
    "lists": (pa.array([[i] for i in range(ROWS)]), "holds list in column 1"),
    "times": (WHOLE.cast(pa.timestamp("s")), r"in column 1"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_parts_of_two_kinds_are_refused_with_their_place(case, tmp_path):
    values, message = OTHERS[case]
    tables = [pa.table({"secret": x, "label": LABEL}) for x in (WHOLE, values)]
    with pytest.raises(InputError, match=message) as caught:
        open_table(folder(tmp_path / "parts", *tables))
    assert "secret" not in str(caught.value)


def test_a_missing_column_is_refused_with_its_place(tmp_path):
    whole = pa.table({"x": WHOLE, "secret": WORDS, "label": LABEL})
    few = whole.drop_columns(["secret"])
    with pytest.raises(InputError, match=r"Part 2 of 2 .* lacks column 2 of the first part"):
        open_table(folder(tmp_path / "a", whole, few))
    with pytest.raises(InputError, match="has a column 2 that the first part does not have"):
        open_table(folder(tmp_path / "b", few, whole))


def test_numbers_that_a_float_cannot_hold_are_refused(tmp_path):
    large = pa.array([(1 << 60) + i for i in range(ROWS)])
    tables = [pa.table({"x": x, "label": LABEL}) for x in (large, GAPS)]
    with pytest.raises(InputError, match="Column 1"):
        read_release(folder(tmp_path / "parts", *tables))
