"""Scratch folders: private, removed in every case, honest about a full disk."""

import contextlib
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from ldpaudit.errors import InputError, OutputError
from ldpaudit.work.memory import (
    LEAST,
    Scratch,
    allowance,
    machine_memory,
    mapping_of,
    resting,
    rows_of,
    shown,
    size_of,
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_arrays_are_files_and_go_with_the_block(place: Path) -> None:
    with Scratch() as scratch:
        assert not list(place.iterdir()), "made when it is first needed"
        array = scratch.array((1000, 3), np.float32)
        assert array.shape == (1000, 3)
        assert not array.any()
        array[500:] = 7
        resting(array[3:])
        assert array.sum() == 500 * 3 * 7
        assert scratch.folder.stat().st_mode & 0o777 == 0o700
        assert np.memmap(array.filename, np.float32, "r").sum() == 500 * 3 * 7
        assert scratch.array((0, 3), np.int32).shape == (0, 3)
        assert scratch.path("a-0").parent == scratch.folder
        with pytest.raises(ValueError, match="hyphens"):
            scratch.path("../x")
    assert not list(place.iterdir())
    assert array[500, 0] == 7, "what is in use stays readable"


def test_what_is_no_mapping_is_left_alone() -> None:
    array = np.ones(3)
    resting(array)
    resting(None)
    assert mapping_of(array[1:]) is None


def test_an_error_removes_the_folder(place: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), Scratch() as scratch:
        scratch.array((9,), np.int8)
        raise KeyboardInterrupt
    assert not list(place.iterdir())
    forgotten = Scratch()
    forgotten.array((9,), np.int8)
    del forgotten
    assert not list(place.iterdir())


def test_a_full_disk_is_one_line_and_leaves_nothing() -> None:
    with Scratch() as scratch:
        with pytest.raises(OutputError, match=r"scratch disk is full: .* MiB more are needed"):
            scratch.array((1 << 50,), np.int8)
        assert [path.name for path in scratch.folder.iterdir()] == ["lock"]


def test_no_place_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(OutputError, match="cannot be used: no such file or directory; set TMPDIR"):
        _ = Scratch().folder


HOLD = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from ldpaudit.work.memory import Scratch
scratch = Scratch()
scratch.array((9,), "int8")
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
    stranger = place / "ldpaudit-scratch-stranger"
    stranger.mkdir()
    with Scratch() as scratch:
        _ = scratch.folder
    assert list(place.iterdir()) == [stranger], "without a lock it may be one that is just made"


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


def test_rows_of_a_mapped_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpaudit.work.memory._SPAN", 1 << 12)
    rng = np.random.default_rng(1)
    with Scratch() as scratch:
        mapped = scratch.array((5000, 3), np.float32)
        mapped[:] = plain = rng.normal(size=(5000, 3)).astype(np.float32)
        few = np.array([7, 7, 4999, 0])
        for rows in (few, np.sort(few), rng.random(5000) < 0.3, rng.permutation(5000)[:999]):
            taken = rows_of(mapped, rows)
            assert type(taken) is np.ndarray
            np.testing.assert_array_equal(taken, plain[rows])
        assert rows_of(mapped, np.empty(0, dtype=np.int64)).shape == (0, 3)
    np.testing.assert_array_equal(rows_of(plain, few), plain[few])
