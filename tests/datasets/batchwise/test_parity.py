"""A file that is read batch by batch gives what it gives when it is read whole."""

import dataclasses
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import ldpaudit
from ldpaudit.datasets import read_release
from ldpaudit.datasets.batchwise import opening
from ldpaudit.datasets.batchwise.opening import Space
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.errors import InputError
from ldpaudit.running.memory import LEAST
from ldpaudit.running.scratch import Scratch, mapping_of

N = 3_000


def content() -> pa.Table:
    rng = np.random.default_rng(1)
    day = datetime.date(2020, 1, 1)
    town = rng.choice(["Ulm", "Bonn", "Kiel", "Aachen"], N).tolist()
    town[7] = None
    town[N - 1] = "Zell"  # a category of the last batch alone
    lists = rng.normal(size=(N, 3)).tolist()
    lists[5] = None
    return pa.table(
        {
            "label": rng.choice(["no", "yes"], N),
            "truth": rng.choice(["no", "yes"], N),
            "x": rng.normal(size=N),
            "far": 1e9 + rng.integers(0, 50, N),
            "huge": pa.array(rng.normal(size=N) * 1e20),
            "small": pa.array(rng.normal(size=N).astype(np.float32)),
            "count": pa.array([None, *rng.integers(0, 9, N - 1).tolist()], pa.int16()),
            "town": town,
            "group": pa.array(rng.choice(["a", "b"], N)).dictionary_encode(),
            "day": [day + datetime.timedelta(int(d)) for d in rng.integers(0, 900, N)],
            "id": np.arange(N),
            "note": [f"word{i} and word{i % 7}" for i in range(N)],
            "flag": pa.array(rng.random(N) < 0.5),
            "lists": lists,
            "left": rng.permutation(N),
        }
    )


def in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ROWS", "_CELLS", "_BYTES"):
        monkeypatch.setattr(opening, name, 1)


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other) or isinstance(one, np.ndarray)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_same_truth_from_a_file_of_its_own(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, path = content().select(["label", "x"]), tmp_path / f"t{suffix}"
    truth = pa.table({"label": pa.array(["no", "yes", "yes"] * (N // 3)).dictionary_encode()})
    if suffix == ".csv":
        pyarrow.csv.write_csv(truth.cast(pa.schema([("label", pa.string())])), path)
    else:
        pq.write_table(truth, path, row_group_size=100)
    whole = read_release(release, truth=path).release
    monkeypatch.setattr("ldpaudit.datasets.beside.truth.LARGE", 1)
    monkeypatch.setattr("ldpaudit.datasets.formats.batches._MOST_ROWS", 640)
    same(whole, read_release(release, truth=path).release)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_same_release(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, table = tmp_path / f"r{suffix}", content()
    if suffix == ".csv":
        table = table.drop_columns(["lists", "group"])
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=700)

    def read() -> ReadReport:
        return read_release(path, truth_column="truth", drop=["left"])

    whole = read()
    in_batches(monkeypatch)
    monkeypatch.setattr("ldpaudit.datasets.formats.batches._MOST_ROWS", 640)
    monkeypatch.setattr("ldpaudit.datasets.formats.csv_batches.ROW_BYTES", 1 << 13)
    monkeypatch.setattr("ldpaudit.datasets.batchwise.features.RESTED", 1 << 14)
    batched = read()
    assert whole.warnings == batched.warnings
    assert whole.release.columns[-1].concern == batched.release.columns[-1].concern
    same(whole.release, batched.release)

    monkeypatch.setattr(opening, "_IN_MEMORY", 0.0)
    with Scratch() as scratch:
        mapped = read_release(path, truth_column="truth", drop=["left"], scratch=scratch)
        assert mapping_of(mapped.release.features.numeric) is not None
        same(whole.release, mapped.release)


def test_many_values_share_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.parquet"
    names = [f"n{i % 1500}" for i in range(N)]
    pq.write_table(pa.table({"label": ["a", "b"] * (N // 2), "name": names}), path)
    in_batches(monkeypatch)
    monkeypatch.setattr("ldpaudit.datasets.formats.batches._MOST_ROWS", 640)
    monkeypatch.setattr("ldpaudit.datasets.batchwise.categories.MOST", 1024)
    features = read_release(path).release.features
    codes = features.categorical[:, 0]
    assert features.cardinalities == (1024,)
    assert codes.min() >= 0
    assert 700 < len(np.unique(codes)) <= 1024
    np.testing.assert_array_equal(codes[:1500], codes[1500:])


def test_too_little_memory_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(content(), path)
    in_batches(monkeypatch)
    most = Space(LEAST)
    Space(None).check(10**9, 18, 2)
    most.check(100_000, 23, 2)
    with pytest.raises(InputError, match=r"600 MiB; 4,500,000 rows with 18 .* at least 1.6 GiB"):
        most.check(4_500_000, 18, 2)
    monkeypatch.setattr(opening, "_BASE", LEAST)
    with pytest.raises(InputError, match=r"3,000 rows with 14 columns and 2 classes need at least"):
        read_release(path, memory=LEAST)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0] * (N - 1) + [np.inf]), "Column 16 must be finite"),
        (pa.array([[1.0]] * (N - 1) + [[1.0, 2.0]]), "Column 16 must hold lists of one length"),
        (pa.array([{"a": 1}] * N), "Column 16 holds nested objects"),
        (pa.array([[["a"]]] * N), "Column 16 must hold lists of numbers"),
    ],
)
def test_what_cannot_be_a_feature(
    column: pa.Array, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(content().append_column("bad", column), path)
    in_batches(monkeypatch)
    monkeypatch.setattr("ldpaudit.datasets.formats.batches._MOST_ROWS", 640)
    with pytest.raises(InputError, match=message):
        read_release(path)


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(content(), path)
    in_batches(monkeypatch)
    encode = opening.encode_batches

    def meddled(*given: Any) -> Any:
        encoded = encode(*given)
        pq.write_table(content().slice(1), path)
        return encoded

    monkeypatch.setattr(opening, "encode_batches", meddled)
    with pytest.raises(InputError, match="changed while it was being read"):
        read_release(path)


def test_a_part_that_is_cut_short_or_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_batches(monkeypatch)
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(3):
        pq.write_table(content().slice(1000 * part, 1000), folder / f"{part}.parquet")
    assert len(read_release(folder).release) == N
    last = folder / "2.parquet"
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        read_release(folder)
    middle = bytearray(whole)
    middle[len(whole) // 3 : len(whole) // 3 + 400] = b"\xff" * 400
    last.write_bytes(bytes(middle))
    with pytest.raises(InputError, match="damaged or truncated"):
        read_release(folder)
    pq.write_table(content().slice(2000).drop_columns(["far"]), last)
    with pytest.raises(InputError, match="must have the same columns and types"):
        read_release(folder)


class HostError(Exception):
    """What a library behind a URL may raise, with a secret in its text."""


HostError.__module__ = "some_host.errors"


def test_storage_that_fails_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    path = tmp_path / "r.parquet"
    pq.write_table(content(), path, row_group_size=500)
    memory = fsspec.filesystem("memory")
    memory.pipe("/failing/r.parquet", path.read_bytes())
    in_batches(monkeypatch)
    assert len(read_release("memory://failing/r.parquet").release) == N

    def broken(*_: Any, **__: Any) -> Any:
        raise HostError("https://user:secret@host")

    monkeypatch.setattr("ldpaudit.datasets.formats.batches.pq.ParquetFile.iter_batches", broken)
    with pytest.raises(InputError, match=r"not be read to its end \(HostError\)") as failed:
        read_release("memory://failing/r.parquet")
    assert "secret" not in str(failed.value)


def test_the_numbers_are_the_same_with_any_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(content().select(["label", "truth", "x", "small", "town"]), path)
    in_batches(monkeypatch)
    found = []
    for share in (1.0, 0.0):
        monkeypatch.setattr(opening, "_IN_MEMORY", share)
        result = ldpaudit.audit(path, truth_column="truth", only=["instance-loss"], memory="4GiB")
        found.append((result.estimates, result.curves))
    assert found[0] == found[1]
