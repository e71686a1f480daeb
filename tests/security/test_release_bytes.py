"""A release tells nothing of the true rows by what lies under its cells, its words or its draft."""

import os
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pytest

from ldpaudit.datasets.formats.tables import without_hidden
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.files.written import TableFile
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize

RR = {"mechanism": "randomized-response", "epsilon": 1.0}
N = 120


def labels():
    return pa.array(np.array(["no", "yes"])[np.random.default_rng(0).integers(0, 2, N)])


def released(table, folder, **options):
    pyarrow.feather.write_feather(table, folder / "d.feather", compression="uncompressed")
    output = folder / "r.feather"
    privatize(PrivatizeRequest(str(folder / "d.feather"), output, **RR, **options))
    with pyarrow.ipc.open_file(output) as file:
        columns = file.read_all().columns
    buffers = [b for column in columns for chunk in column.chunks for b in chunk.buffers()]
    return b"".join(buffer.to_pybytes() for buffer in buffers if buffer is not None)


def test_nothing_lies_under_missing_values(tmp_path):
    """pandas and Arrow keep what was in a cell before it was made missing; Feather writes it."""
    codes = pd.Series(np.arange(N) + 7_654_321, dtype="Int64")
    codes[:] = pd.NA
    words = pa.array(["qzsecretkx"] * N)
    missing = pa.array([False] * N).buffers()[1]
    hidden = pa.Array.from_buffers(pa.string(), N, [missing, *words.buffers()[1:]])
    table = pa.table({"label": labels(), "code": pa.array(codes), "word": hidden})
    pyarrow.feather.write_feather(table, tmp_path / "as.feather", compression="uncompressed")
    tokens = (b"qzsecretkx", np.int64(7_654_321).tobytes())
    assert all(token in (tmp_path / "as.feather").read_bytes() for token in tokens)
    content = released(table, tmp_path)
    assert not any(token in content for token in tokens)


NUMBERS = pa.array(np.arange(6) + 1000)
GONE = pa.array([False] * 3 + [True] * 3).buffers()[1]
OFFSETS = pa.array(np.arange(7), pa.int32())
PLAIN = pa.Array.from_buffers(pa.int64(), 6, [GONE, NUMBERS.buffers()[1]])
STRUCT = pa.Array.from_buffers(pa.struct([("a", pa.int64())]), 6, [GONE], children=[NUMBERS])
HIDING = {
    "number": PLAIN,
    "structure": STRUCT,
    "list": pa.Array.from_buffers(
        pa.list_(pa.int64()), 6, [GONE, OFFSETS.buffers()[1]], children=[NUMBERS]
    ),
    "list of one length": pa.Array.from_buffers(
        pa.list_(pa.int64(), 1), 6, [GONE], children=[NUMBERS]
    ),
    "inside a list": pa.ListArray.from_arrays(OFFSETS, PLAIN),
    "inside a structure": pa.StructArray.from_arrays([PLAIN], names=["a"]),
    "structures inside a list": pa.ListArray.from_arrays(OFFSETS, STRUCT),
}


@pytest.mark.parametrize("name", HIDING)
def test_what_was_there_before_is_gone(name):
    column = HIDING[name]
    clean = without_hidden(column)
    assert (clean.type, clean.to_pylist()) == (column.type, column.to_pylist())
    content = b"".join(buffer.to_pybytes() for buffer in clean.buffers() if buffer)
    assert np.int64(1005).tobytes() in content
    assert np.int64(1000).tobytes() not in content
    whole = pa.array([[1.0, 2.0]] * 6)
    assert without_hidden(whole) is whole


@pytest.mark.parametrize("true", ["TRUE", "1.0"])
def test_declared_labels_are_spelt_alike_whoever_has_them(true, tmp_path):
    """Else the spelling shows that somebody has a label, whatever the noise."""
    other = {"TRUE": "FALSE", "1.0": "0.0"}[true]
    classes = {"TRUE": (False, True), "1.0": (0, 1)}[true]
    spelt = []
    for number, words in enumerate(([other] * N, [other] * (N - 1) + [true])):
        table = pa.table({"label": words, "x": np.arange(N) % 7})
        folder = tmp_path / str(number)
        folder.mkdir()
        released(table, folder, classes=classes)
        found = pyarrow.feather.read_table(folder / "r.feather")["label"]
        spelt.append((found.type, set(found.to_pylist())))
    assert spelt[0] == spelt[1]


def test_a_draft_is_its_owners_until_it_is_whole(tmp_path, monkeypatch):
    """A release that is refused at its end held a copy of the true labels until then."""
    modes = set()
    write = TableFile.write

    def watched(self, batch):
        write(self, batch)
        modes.update(stat.S_IMODE(one.stat().st_mode) for one in tmp_path.glob(".*.new.tmp"))

    monkeypatch.setattr(TableFile, "write", watched)
    table = pa.table({"label": labels(), "copy": labels(), "x": np.arange(N) % 7})
    old = os.umask(0o022)
    try:
        with pytest.raises(InputError, match="Column 2"):
            released(table, tmp_path)
        released(table.drop_columns("copy"), tmp_path)
    finally:
        os.umask(old)
    assert (modes, stat.S_IMODE((tmp_path / "r.feather").stat().st_mode)) == ({0o600}, 0o644)
