"""Every write and every renaming fails once, and from then on: nothing is half done, nothing lost.

The same is done with the system's calls, for every command, in ``test_fault_campaign.py``.
"""

import errno
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from security.output.failing import Failing, failing_calls

from ldpaudit.errors import OutputError
from ldpaudit.work.files import WholeFiles, write_all

Command = Callable[..., tuple[int, str, str]]
FORMER = {"a": b"former a", "b": b"former b"}
NEW = {"a": b"new a", "b": b"new b", "c": b"new c"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def placed(tmp_path: Path) -> Iterator[Path]:
    """Yield folders with the former files, one for each call that is to fail."""
    for number in count():
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in FORMER.items():
            (folder / name).write_bytes(content)
        yield folder


def write_new(folder: Path) -> None:
    with WholeFiles() as files:
        for name, content in NEW.items():
            files.add(folder / name, private=name == "a").write(content)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_call_that_fails_once_leaves_all_as_it_was_or_all_new(
    tmp_path: Path, number: int
) -> None:
    outcomes = set()
    for turn, folder in enumerate(placed(tmp_path), 1):
        error, told = OSError(number, "it fails"), ""
        with failing_calls(Failing(folder, turn, error)) as failing:
            try:
                write_new(folder)
                expected = NEW
            except OutputError as refused:
                expected, told = FORMER, str(refused)
        assert contents(folder) == expected, turn
        assert "\n" not in told
        outcomes.add(expected is NEW)
        if failing.calls < turn:
            break
    assert turn > 20
    assert outcomes == {True, False}


def test_calls_that_go_on_failing_lose_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A disk that dies: what cannot be put back is kept beside, and the message says where."""
    kept = 0
    for turn, folder in enumerate(placed(tmp_path), 1):
        told = ""
        error = OSError(errno.EROFS, "Read-only file system")
        with failing_calls(Failing(folder, turn, error, lasting=True)) as failing:
            try:
                write_new(folder)
            except OutputError as refused:
                told = str(refused)
        found, drafts = contents(folder), capfd.readouterr().err
        for name, former in FORMER.items():
            if told and found[name] != former:
                beside = re.search(rf"'{name}' be taken back[^']*'([^']+)'", told)
                assert beside is not None, (turn, told)
                assert found[beside[1]] == former
                kept += 1
            elif not told:
                assert found[name] == NEW[name]
        if told and "c" in found:
            assert "'c' be taken back" in told
        for name in found.keys() - NEW.keys():
            assert name in told or name in drafts, (turn, name)
        if failing.calls < turn:
            break
    assert kept > 2


def test_a_former_file_that_cannot_be_put_back_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renaming fails for good, removing does not: nothing that is all there is may be removed."""
    for name, content in FORMER.items():
        (tmp_path / name).write_bytes(content)
    real, done = Path.replace, []

    def once(self: Path, target: Path) -> Path:
        if done:
            raise OSError(errno.EIO, "Input/output error")
        done.append(target.name)
        return real(self, target)

    monkeypatch.setattr(Path, "replace", once)
    with pytest.raises(OutputError, match="'a' be taken back: it is the new one") as refused:
        write_new(tmp_path)
    beside = re.findall(r"'(\.[^']+)'", str(refused.value))
    found = contents(tmp_path)
    assert found.keys() == {"a", "b", *beside}
    assert [found[name] for name in ("a", "b", *beside)] == [b"new a", b"former b", b"former a"]


def test_a_renaming_that_is_done_and_still_fails_is_taken_back(tmp_path: Path) -> None:
    """File systems of the network do that; and so may an interruption."""
    real = Path.replace

    def late(self: Path, target: Path) -> Path:
        real(self, target)
        if target.name == "new" and not target.is_symlink():
            raise KeyboardInterrupt
        return target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", late)
        with pytest.raises(KeyboardInterrupt):
            write_all({tmp_path / "new": "x"})
    assert contents(tmp_path) == {}


def test_without_hard_links_a_copy_of_a_secret_is_its_owners_alone(tmp_path: Path) -> None:
    modes = []
    (tmp_path / "s").write_text("former")
    (tmp_path / "s").chmod(0o600)
    copied = "shutil.copy2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no")))
        patch.setattr(copied, lambda _, target: modes.append(target.stat().st_mode & 0o777))
        with WholeFiles() as files:
            files.add(tmp_path / "s", private=True).write(b"new")
    assert modes == [0o600]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "d.csv"
    pd.DataFrame({"x": range(60), "label": ["A", "B", "B"] * 20}).to_csv(place, index=False)
    return place


def pair(folder: Path) -> tuple[bytes, ...]:
    return tuple((folder / name).read_bytes() for name in ("r.parquet", "s.parquet"))


def test_a_release_and_its_secret_are_one_pair_whatever_fails(
    tmp_path: Path, table: Path, command: Command
) -> None:
    words: list[Any] = ["privatize", table, "--mechanism", "rr", "--epsilon", "1", "--quiet"]
    words += ["-o", tmp_path / "r.parquet", "--secret", tmp_path / "s.parquet", "--overwrite"]
    assert command(*words)[0] == 0
    former, names = pair(tmp_path), contents(tmp_path).keys()
    replaced = 0
    for turn in count(1):
        error = OSError(errno.EIO, "Input/output error")
        with failing_calls(Failing(tmp_path, turn, error)) as failing:
            status, out, err = command(*words)
        now = pair(tmp_path)
        assert contents(tmp_path).keys() == names
        assert not out
        if status:
            assert (status, now) == (2, former)
            assert err.count("\n") == 1, err
        else:
            assert "second, independent draw" in err
            assert all(new != old for new, old in zip(now[:1], former[:1], strict=True))
            assert pq.read_table(tmp_path / "r.parquet").num_rows == 60
            replaced += 1
        former = now
        if failing.calls < turn:
            break
    assert turn > 15
    assert replaced >= 2


def test_a_page_and_a_result_are_both_written_or_neither(tmp_path: Path, command: Command) -> None:
    words = ["mechanism", "describe", "rr", "--epsilon", "1", "--classes", "A,B"]
    words += ["--json", str(tmp_path / "m.json"), "--html", str(tmp_path / "m.html")]
    for name in ("m.json", "m.html"):
        (tmp_path / name).write_text("former")
    for turn in count(1):
        error = OSError(errno.ENOSPC, "No space left on device")
        with failing_calls(Failing(tmp_path, turn, error)) as failing:
            status, _, err = command(*words)
        found = contents(tmp_path)
        assert found.keys() == {"m.json", "m.html"}
        if status:
            assert set(found.values()) == {b"former"}
            assert re.fullmatch(r"ldpaudit: The file 'm\.\w+' cannot be written: [a-z ]+\.\n", err)
        else:
            assert b"former" not in found.values()
            for name in found:
                (tmp_path / name).write_text("former")
        if failing.calls < turn:
            break
    assert turn > 10
