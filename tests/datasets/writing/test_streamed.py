"""Files written batch by batch: all of them whole, or none."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.writing.streamed import WholeFiles
from ldpaudit.errors import OutputError

SCHEMA = pa.schema([("x", pa.int64())])
BATCH = pa.record_batch({"x": [1, 2, 3]})


def write_two(folder: Path, *, overwrite: bool = False) -> None:
    with WholeFiles(overwrite) as files:
        for name in ("one", "two"):
            part = files.add(folder / f"{name}.parquet", SCHEMA, private=name == "one")
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
    with pytest.raises(error), WholeFiles() as files:  # noqa: PT012
        files.add(tmp_path / "one.parquet", SCHEMA).write(BATCH)
        files.add(tmp_path / "two.parquet", SCHEMA)
        assert len(names(tmp_path)) == 2
        raise error
    assert names(tmp_path) == []


def test_a_file_that_came_in_between_is_kept(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"), WholeFiles() as files:  # noqa: PT012
        files.add(tmp_path / "one.parquet", SCHEMA).write(BATCH)
        files.add(tmp_path / "two.parquet", SCHEMA).write(BATCH)
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

    monkeypatch.setattr(Path, "replace", second_fails)
    with pytest.raises(OutputError, match="cannot be written"):
        write_two(tmp_path)
    assert names(tmp_path) == []


def test_a_batch_of_another_type_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"), WholeFiles() as files:
        files.add(tmp_path / "one.parquet", SCHEMA).write(pa.record_batch({"x": ["word"]}))
    assert names(tmp_path) == []
