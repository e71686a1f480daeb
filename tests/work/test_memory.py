"""Scratch folders: private, removed in every case, honest about a full disk."""

import contextlib
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ldpaudit.errors import InputError, OutputError
from ldpaudit.work.memory import (
    LEAST,
    Scratch,
    allowance,
    machine_memory,
    shown,
    size_of,
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_the_block(place: Path) -> None:
    with Scratch() as scratch:
        assert not list(place.iterdir()), "made when it is first needed"
        assert scratch.folder.stat().st_mode & 0o777 == 0o700
        (scratch.folder / "a").write_text("text")
    assert not list(place.iterdir())


def test_an_error_removes_the_folder(place: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), Scratch() as scratch:
        (scratch.folder / "a").touch()
        raise KeyboardInterrupt
    assert not list(place.iterdir())
    forgotten = Scratch()
    (forgotten.folder / "a").touch()
    del forgotten
    assert not list(place.iterdir())


def test_no_place_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(OutputError, match="cannot be used: no such file or directory; set TMPDIR"):
        _ = Scratch().folder


HOLD = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from ldpaudit.work.memory import Scratch
scratch = Scratch()
(scratch.folder / "a").touch()
print("ready", flush=True)
time.sleep(60)
"""


def test_left_overs_of_a_killed_run_are_removed_by_the_next(place: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == b"ready\n"
        with Scratch() as scratch:
            _ = scratch.folder
            assert len(list(place.iterdir())) == 2, "one that is in use is left alone"
        held.send_signal(signal.SIGKILL)
    (place / "ldpaudit-scratch-link").symlink_to(place)
    with Scratch() as scratch:
        _ = scratch.folder
    assert [path.name for path in place.iterdir()] == ["ldpaudit-scratch-link"]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4", 4 << 30),
        ("4GiB", 4 << 30),
        ("800 MB", 800 * 10**6),
        ("2g", 2 << 30),
        (str(1 << 30), 1 << 30),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size
    assert allowance(size) == size


@pytest.mark.parametrize(
    "text", ["", "four", "4 apples", "-1GiB", "10MB", "0", "0.1", "1e9", "9999999T"]
)
def test_no_sizes(text: str) -> None:
    with pytest.raises(InputError, match=r"memory must be"):
        size_of(text)


def test_sizes_in_words() -> None:
    assert shown(LEAST) == "600 MiB"
    assert shown(1.01 * 2**30) == "1.1 GiB"
    assert 1 << 28 < allowance(None) <= machine_memory() // 2
