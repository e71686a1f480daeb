from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets import declare, read_release, write_release
from ldpaudit.errors import InputError, OutputError
from ldpaudit.release import Declaration

TABLE = pa.table({"x": [1.0, 2.0] * 10, "label": ["a", "b"] * 10})


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
