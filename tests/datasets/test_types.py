"""Columns of every type of Arrow's, from files and frames: right, or refused in one line."""

import datetime
import struct
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize

ROWS = 240
WORDS = ["no", "yes", "maybe"]
CODES = [i % 3 for i in range(ROWS)]
TEXTS = [WORDS[code] for code in CODES]
HOUR = datetime.datetime(2020, 1, 1, 10)
ENDS = np.arange(1, ROWS + 1, dtype=np.int32)


def dictionary(index, values=None):
    return pa.DictionaryArray.from_arrays(pa.array(CODES, index), values or pa.array(WORDS))


TYPES = {
    "uint8": dictionary(pa.uint8()),
    "uint16": dictionary(pa.uint16()),
    "uint32": dictionary(pa.uint32()),
    "uint64": dictionary(pa.uint64()),
    "int64": dictionary(pa.int64()),
    "Polars' categories": dictionary(pa.uint32(), pa.array(WORDS, pa.string_view())),
    "large": dictionary(pa.uint8(), pa.array(WORDS, pa.large_string())),
    "numbers": dictionary(pa.uint8(), pa.array([10, 20, 30])),
    "floats": dictionary(pa.int8(), pa.array([0.5, 1.0, 1.5])),
    "views": pa.array(TEXTS, pa.string_view()),
    "runs": pa.RunEndEncodedArray.from_arrays(ENDS, pa.array(TEXTS)),
    "runs of categories": pa.RunEndEncodedArray.from_arrays(ENDS, dictionary(pa.uint8())),
    "part of runs": pa.RunEndEncodedArray.from_arrays(
        np.arange(1, ROWS + 10, dtype=np.int32), pa.array(["zz"] * 9 + TEXTS)
    ).slice(9),
    "seconds": pa.array([HOUR.replace(hour=code) for code in CODES], pa.timestamp("s")),
    "nanoseconds": pa.array([HOUR.replace(hour=code) for code in CODES], pa.timestamp("ns")),
    "milliseconds of days": pa.array(
        [datetime.date(2020, 1, 1 + code) for code in CODES], pa.date64()
    ),
    "whole decimals": pa.array(map(Decimal, CODES), pa.decimal128(38, 0)),
    "decimals": pa.array([Decimal(code) / 4 for code in CODES], pa.decimal128(10, 2)),
    "short decimals": pa.array([Decimal(code) / 4 for code in CODES]).cast(pa.decimal32(5, 2)),
    "half": pa.array(np.array(CODES, dtype=np.float16)),
}


def sources(table, folder):
    yield table
    for write, name in (
        (pq.write_table, "t.parquet"),
        (pyarrow.feather.write_feather, "t.feather"),
    ):
        try:
            write(table, folder / name)
        except pa.ArrowException:  # Not of every type.
            continue
        yield folder / name


def released(source, folder, names=("f",)):
    privatize(
        PrivatizeRequest(
            source, folder / "r.parquet", label=["label"], mechanism="rr", epsilon=3.0,
            keep=["f"] if "f" in names else [], secret=folder / "s.parquet", overwrite=True,
        )
    )  # fmt: skip
    return folder / "r.parquet"


@pytest.mark.parametrize("kind", TYPES)
def test_labels_and_features_of_every_type(kind, tmp_path):
    column = TYPES[kind]
    table = pa.table({"x": np.arange(ROWS) % 7, "f": column, "label": column})
    for source in sources(table, tmp_path):
        assert read_release(source).release.released.tolist() == (
            read_release(table).release.released.tolist()
        )
        release = released(source, tmp_path)
        for truth in (source, tmp_path / "s.parquet"):
            read = read_release(release, truth=truth).release
            assert len(read.classes) == 3
            assert len({*zip(CODES, read.truth.tolist(), strict=True)}) == 3
            assert (read.released == read.truth).mean() > 0.6


@pytest.mark.parametrize(
    "column", [pa.array([datetime.time(code) for code in CODES]), pa.array([[c, c] for c in CODES])]
)
def test_labels_of_other_types_are_refused_in_one_line(column, tmp_path):
    table = pa.table({"x": np.arange(ROWS), "label": column})
    for source in sources(table, tmp_path):
        with pytest.raises(InputError, match="label must be text, a number, a date or a boolean"):
            read_release(source)
        with pytest.raises(InputError, match="label must be text, a number, a date or a boolean"):
            released(source, tmp_path, ())


class Column:
    """A column of a library that is not installed, by what it exports."""

    def __init__(self, values):
        self._values = pa.chunked_array([pa.array(values)])

    def __arrow_c_stream__(self, requested_schema=None):
        return self._values.__arrow_c_stream__(requested_schema)


class Tensor:
    """Another one, which NumPy reads."""

    ndim = 1

    def __init__(self, values):
        self._values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return self._values


@pytest.mark.parametrize("make", [Column, Tensor, list, np.array, pd.Series, pa.array])
def test_true_labels_of_any_library(make):
    table = pa.table({"x": np.arange(ROWS), "label": TEXTS})
    release = read_release(table, truth=make(TEXTS)).release
    assert (release.truth == release.released).all()


def test_a_structured_array_is_a_table():
    array = pd.DataFrame({"x": range(ROWS), "label": CODES}).to_records(index=False)
    assert read_release(array).release.classes == (0, 1, 2)


def blocks(footer):
    """Yield where the offsets of dictionaries and batches stand in a footer."""
    root = struct.unpack_from("<I", footer, 0)[0]
    own = root - struct.unpack_from("<i", footer, root)[0]
    for field in (2, 3):
        at = struct.unpack_from("<H", footer, own + 4 + 2 * field)[0]
        start = root + at + struct.unpack_from("<I", footer, root + at)[0]
        for place in range(struct.unpack_from("<I", footer, start)[0]):
            yield start + 4 + 24 * place


def shifted(content, by):
    """Return an Arrow file with a gap after its mark, as Polars writes it: the footer knows."""
    (length,) = struct.unpack("<i", content[-10:-6])
    footer = bytearray(content[-10 - length : -10])
    for place in blocks(footer):
        struct.pack_into("<q", footer, place, struct.unpack_from("<q", footer, place)[0] + by)
    return content[:8] + bytes(by) + content[8 : -10 - length] + bytes(footer) + content[-10:]


@pytest.mark.parametrize("gap", [0, 56])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_an_arrow_file_is_read_by_its_footer(gap, codec, tmp_path):
    table = pa.table({"x": np.arange(ROWS), "label": dictionary(pa.uint32())})
    sink = pa.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression=codec)
    with pyarrow.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=100)
    content = shifted(sink.getvalue().to_pybytes(), gap)
    path = tmp_path / "r.feather"
    path.write_bytes(content)
    release = read_release(path).release
    assert [release.classes[code] for code in release.released] == TEXTS
    for broken in (content[:-1], content[:-20], content[: len(content) // 2], content[:8]):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="damaged or truncated"):
            read_release(path)
