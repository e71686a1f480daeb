"""What privatize holds in memory: no block of rows, and of long texts a sample of fewer rows."""

import gc
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ldpaudit.datasets.as_read import ColumnReader
from ldpaudit.datasets.formats.tables import allowed, held_to, without_long_texts
from ldpaudit.errors import InputError
from ldpaudit.extras.release.privatize import labels, scan, work
from ldpaudit.extras.release.privatize.request import PrivatizeRequest

ROWS = 3000
FRAME = pd.DataFrame(
    {
        "x": np.arange(ROWS) % 13 + 0.5,
        "town": [f"t{i % 5}" for i in range(ROWS)],
        "label": ["no", "yes", "perhaps"] * (ROWS // 3),
    }
)


def test_a_limit_around_others_holds_inside_of_them():
    with held_to(1000), held_to(None):
        assert allowed() == 1000
        with held_to(500):
            assert allowed() == 500
    assert allowed() > 1 << 20


def test_no_batch_of_a_block_is_held(monkeypatch):
    monkeypatch.setattr(labels, "BLOCK_ROWS", 70)
    alive = []

    def batches():
        for start in range(0, 300, 30):
            batch = pa.record_batch({"x": np.arange(start, start + 30)})
            alive.append(weakref.ref(batch))
            yield batch, None

    rows = []
    for pieces in labels.in_pieces(batches()):
        block = []
        for batch, _ in pieces:
            block += batch["x"].to_pylist()
            del batch
            gc.collect()
            assert sum(one() is not None for one in alive) <= 2
        rows.append(block)
    assert [len(block) for block in rows] == [70, 70, 70, 70, 20]
    assert np.concatenate(rows).tolist() == list(range(300))


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "feather"])
@pytest.mark.parametrize("large", [False, True])
def test_blocks_that_are_read_twice_give_the_same_release(form, large, tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "BLOCK_ROWS", 700)
    monkeypatch.setattr(work, "_is_large", lambda *_: large)
    source, out = tmp_path / f"d.{form}", tmp_path / f"r.{form}"
    write = {"csv": "to_csv", "csv.gz": "to_csv"}.get(form, f"to_{form}")
    getattr(FRAME, write)(source, **({"index": False} if "csv" in form else {}))
    options = {"mechanism": "rr", "epsilon": 1.0, "experimental": True, "seed": 7}
    work.privatize(PrivatizeRequest(source, out, secret=tmp_path / f"s.{form}", **options))
    released = (pd.read_csv if "csv" in form else getattr(pd, f"read_{form}"))(out)
    pd.testing.assert_frame_equal(released.drop(columns="label"), FRAME.drop(columns="label"))
    kept = np.mean(released["label"] == FRAME["label"])
    assert 0.4 < kept < 0.75  # e / (e + 2) = 0.58; labels out of order agree in a third.
    monkeypatch.setattr(work, "_is_large", lambda *_: not large)
    work.privatize(PrivatizeRequest(source, tmp_path / f"again.{form}", **options))
    assert (tmp_path / f"again.{form}").read_bytes() == out.read_bytes()


def test_a_block_that_needs_all_features_must_fit():
    batch = pa.record_batch({"x": ["y" * 1000] * 1000})
    with held_to(1 << 20), pytest.raises(InputError, match=r"A block of .* unpacks to"):
        labels.held([(batch, None)])


@pytest.mark.scanned
@pytest.mark.parametrize("size", [10, 1000])
def test_the_rows_that_are_looked_at_fit(size, monkeypatch):
    monkeypatch.setattr(scan, "_MOST_BYTES", 100_000)
    looked = scan.ReleasedColumns(["x"], ["label"], 3000, ["x", "label"], ColumnReader())
    for _ in range(30):
        texts = pa.array([f"{i % 3}".rjust(size, "z") for i in range(100)])
        batch = pa.record_batch({"x": texts})
        looked.watch(batch, [pa.array([f"l{i % 3}" for i in range(100)])])
    rows, kept = sum(map(len, looked._rows)), sum(b.nbytes for b in looked._rows)
    assert kept <= 110_000
    assert rows == 3000 if size == 10 else 70 < rows < 110
    assert len(looked._rows) >= 15  # Of all parts of the table.
    seen = " that was looked at" * (size > 10)
    with pytest.raises(InputError, match=f"tells the true label in every row{seen}, so"):
        looked.check()


def test_long_texts_of_categories_are_cut_and_stay_distinct():
    texts = ["a", "x" * 10_000 + "1", "x" * 10_000 + "2", None]
    column = pa.chunked_array([pa.DictionaryArray.from_arrays([0, 1, 2, 1, None], texts)])
    cut = without_long_texts(column).cast(pa.large_string()).to_pylist()
    assert [cut[0], cut[4]] == ["a", None]
    assert len({*cut}) == 4
    assert cut[1] == cut[3]
    assert max(len(one) for one in cut if one) < 5_000
    plain = column.cast(pa.string())
    assert without_long_texts(plain) is plain
