from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets import declare, read_release, write_release
from ldpaudit.datasets.writing import TableFile
from ldpaudit.errors import InputError, OutputError
from ldpaudit.release import Declaration
from ldpaudit.work.files import WholeFiles

TABLE = pa.table({"x": [1.0, 2.0] * 10, "label": ["a", "b"] * 10})
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


def test_a_file_that_came_in_between_is_kept(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"), WholeFiles(overwrite=False) as files:  # noqa: PT012
        for name in ("one.parquet", "two.parquet"):
            TableFile(files.add(tmp_path / name), BATCH.schema).write(BATCH)
        (tmp_path / "two.parquet").write_bytes(b"somebody else's")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"somebody else's"]


def test_a_batch_of_another_type_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"), WholeFiles() as files:
        TableFile(files.add(tmp_path / "one.parquet"), BATCH.schema).write(TABLE.to_batches()[0])
    assert not list(tmp_path.iterdir())
