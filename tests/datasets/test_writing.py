import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets import declare, read_release, write_release
from ldpaudit.datasets.writing import TableFile
from ldpaudit.errors import InputError, OutputError
from ldpaudit.release import Declaration
from ldpaudit.work.files import WholeFiles

TABLE = pa.table({"x": [1.0, 2.0] * 10, "label": ["a", "b"] * 10})
SCHEMA = pa.schema([("x", pa.int64())])
BATCH = pa.record_batch({"x": [1, 2, 3]})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    claim = Declaration("randomized-response", {"classes": ["a", "b"], "epsilon": 1.0})
    path = write_release(declare(TABLE, claim, "label"), tmp_path / "r.parquet")
    assert read_release(path).release.declaration == claim
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"]


def test_a_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    path = write_release(TABLE, tmp_path / "r.parquet")
    with pytest.raises(OutputError, match="exists already"):
        write_release(TABLE.slice(0, 4), path)
    assert pq.read_table(path).num_rows == 20
    write_release(TABLE.slice(0, 4), path, overwrite=True)
    assert pq.read_table(path).num_rows == 4


def test_one_changed_byte_of_data_is_found(tmp_path: Path) -> None:
    path = write_release(
        pa.table({"x": range(1000), "label": [0, 1] * 500}), tmp_path / "r.parquet"
    )
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read_release(path)


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any, stream: Any, **__: Any) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", broken)
    with pytest.raises(KeyboardInterrupt):
        write_release(TABLE, tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["nowhere/r.parquet", "", "a\0b.parquet", "x" * 300])
def test_places_that_cannot_be_written(place: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        write_release(TABLE, tmp_path / place, overwrite=True)
    assert str(tmp_path.parent) not in str(caught.value)


def table_file(files: WholeFiles, place: Path) -> TableFile:
    return TableFile(files.add(place), SCHEMA)


def write_two(folder: Path, *, overwrite: bool = False) -> None:
    with WholeFiles(overwrite) as files:
        for name in ("one", "two"):
            place = folder / f"{name}.parquet"
            part = TableFile(files.add(place, private=name == "one"), SCHEMA)
            part.write(BATCH)
            part.write(BATCH)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_both_files_are_whole(tmp_path: Path) -> None:
    write_two(tmp_path)
    assert names(tmp_path) == ["one.parquet", "two.parquet"]
    for name in names(tmp_path):
        assert pq.read_table(tmp_path / name)["x"].to_pylist() == [1, 2, 3] * 2
    with pytest.raises(OutputError, match="exists already"):
        write_two(tmp_path)
    write_two(tmp_path, overwrite=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_an_error_leaves_neither(error: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(error), WholeFiles(overwrite=False) as files:  # noqa: PT012
        table_file(files, tmp_path / "one.parquet").write(BATCH)
        table_file(files, tmp_path / "two.parquet")
        assert len(names(tmp_path)) == 2
        raise error
    assert names(tmp_path) == []


def test_a_file_that_came_in_between_is_kept(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"), WholeFiles(overwrite=False) as files:  # noqa: PT012
        table_file(files, tmp_path / "one.parquet").write(BATCH)
        table_file(files, tmp_path / "two.parquet").write(BATCH)
        (tmp_path / "two.parquet").write_bytes(b"somebody else's")
    assert names(tmp_path) == ["two.parquet"]
    assert (tmp_path / "two.parquet").read_bytes() == b"somebody else's"


def test_a_failed_renaming_takes_the_other_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def second_fails(self: Path, target: Path) -> Path:
        if target.name == "two.parquet":
            raise OSError
        return replace(self, target)

    def no_link(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", second_fails)
    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(OutputError, match="cannot be written"):
        write_two(tmp_path)
    assert names(tmp_path) == []


def test_a_batch_of_another_type_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="cannot be written"),
        WholeFiles(overwrite=False) as files,
    ):
        table_file(files, tmp_path / "one.parquet").write(pa.record_batch({"x": ["word"]}))
    assert names(tmp_path) == []
