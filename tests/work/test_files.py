"""Scratch folders: private, removed in every case, honest about a full disk."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ldpaudit.errors import InputError, OutputError
from ldpaudit.work import files as writing
from ldpaudit.work.files import PartFile, WholeFiles, write_all, write_whole
from ldpaudit.work.memory import (
    LEAST,
    Scratch,
    allowance,
    machine_memory,
    shown,
    size_of,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail_at(monkeypatch, owner, name, turn, error):
    """Let the ``turn``-th call of ``owner.name`` raise."""
    real = getattr(owner, name)
    calls = 0

    def sometimes(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == turn:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, sometimes)


def test_writes_and_replaces(tmp_path):
    target = tmp_path / "report.html"
    write_whole(target, "first ε")
    write_whole(target, "second ε\r\n")
    assert (target.read_bytes(), names(tmp_path)) == ("second ε\r\n".encode(), ["report.html"])


def test_new_files_obey_the_umask_and_old_ones_keep_their_mode(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write_all({old: "x", new: "y"})
    finally:
        os.umask(before)
    assert (old.stat().st_mode & 0o777, new.stat().st_mode & 0o777) == (0o640, 0o640)


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("place", ["missing/report.html", "file/report.html", ".", "x" * 300])
def test_unwritable_places_are_one_line(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written") as caught:
        write_whole(tmp_path / place, "text")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["file"]


def test_devices_are_not_replaced():
    with pytest.raises(OutputError, match="not a file"):
        write_whole(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_failure_while_writing_leaves_everything_as_it_was(tmp_path, monkeypatch, turn, error):
    old, new = tmp_path / "old.html", tmp_path / "new.json"
    old.write_text("before")
    fail_at(monkeypatch, os, "fsync", turn, error)
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_all({old: "after", new: "after"})
    assert (old.read_text(), names(tmp_path)) == ("before", ["old.html"])


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_failure_while_renaming_leaves_everything_as_it_was(tmp_path, monkeypatch, turn, error):
    old, new = tmp_path / "old.html", tmp_path / "new.json"
    old.write_text("before")
    fail_at(monkeypatch, Path, "replace", turn, error)
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_all({new: "after", old: "after"})
    assert (old.read_text(), names(tmp_path)) == ("before", ["old.html"])


def test_a_draft_that_cannot_be_emptied_is_not_left(tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(writing.os, "ftruncate", fails)
    with pytest.raises(OutputError, match="input/output error"):
        write_whole(tmp_path / "a.json", "new")
    assert not list(tmp_path.iterdir())


def test_without_hard_links(tmp_path, monkeypatch):
    old, other = tmp_path / "a", tmp_path / "b"
    old.write_text("before")
    fail_at(monkeypatch, os, "link", 1, OSError(errno.EPERM, "Operation not permitted"))
    fail_at(monkeypatch, Path, "replace", 2, OSError(errno.EIO, "I/O error"))
    with pytest.raises(OutputError, match="i/o error"):
        write_all({old: "after", other: "after"})
    assert (old.read_text(), names(tmp_path)) == ("before", ["a"])


def test_lone_surrogates_do_not_stop_the_writing(tmp_path):
    write_whole(tmp_path / "x", "a\ud800b")
    assert (tmp_path / "x").read_text() == "a?b"


def test_a_private_file_is_its_owners_alone_whatever_was_there(tmp_path):
    old = tmp_path / "old"
    old.write_text("before")
    old.chmod(0o644)
    with WholeFiles() as files:
        for path in (old, tmp_path / "new"):
            files.add(path, private=True).write(b"secret")
        drafts = list(tmp_path.glob(".*.tmp"))
        assert [draft.stat().st_mode & 0o777 for draft in drafts] == [0o600] * 2
    assert [path.stat().st_mode & 0o777 for path in (old, tmp_path / "new")] == [0o600] * 2


def test_the_end_of_a_format_that_fails_leaves_nothing(tmp_path):
    def broken():
        raise ValueError("a cell of the table")

    line = r"'x' cannot be written \(ValueError\)"
    with pytest.raises(OutputError, match=line) as caught, WholeFiles() as files:  # noqa: PT012
        files.add(tmp_path / "y").write(b"whole")
        files.add(tmp_path / "x").finish = broken
    assert "cell" not in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("taken", [True, False])
def test_without_leave_nothing_is_replaced(tmp_path, taken):
    target = tmp_path / "x"
    if taken:
        target.write_text("before")
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="exists already"), WholeFiles(overwrite=False) as files:
        files.add(target).write(b"after")
    assert names(tmp_path) == ["x"]


def test_the_text_of_an_error_from_elsewhere_is_not_passed_on(tmp_path, monkeypatch):
    def fails(_):
        raise ValueError("/home/SENTINEL")

    monkeypatch.setattr(PartFile, "settle", fails)
    monkeypatch.setattr(PartFile, "undo", lambda _: "It is there.")
    with pytest.raises(OutputError) as caught:
        write_whole(tmp_path / "a.txt", "a")
    assert str(caught.value) == "The files cannot be written (ValueError). It is there."


def test_a_draft_that_a_killed_run_left_is_taken_over(tmp_path):
    """A killed run may leave it with the mode of the file that it was to become."""
    target, draft = tmp_path / "r", tmp_path / ".r.new.tmp"
    for mode in (0o600, 0o644):
        draft.write_text("of a run that was killed, and longer")
        draft.chmod(mode)
        (tmp_path / ".r.old.tmp").write_text("what was there before")
        write_all({target: "new"}, private=True)
        assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o600)
        assert names(tmp_path) == ["r"]


@pytest.mark.parametrize("made", [os.mkfifo, lambda path: path.symlink_to("r"), Path.mkdir])
def test_what_is_no_draft_is_left_alone(tmp_path, made):
    made(tmp_path / ".r.new.tmp")
    with pytest.raises(OutputError, match="'r' cannot be written"):
        write_whole(tmp_path / "r", "new")
    assert names(tmp_path) == [".r.new.tmp"]


def test_two_at_once_never_mix(tmp_path, monkeypatch):
    """The second waits for the first, and is refused where that takes long."""
    monkeypatch.setattr(writing, "_PATIENCE", 0.1)
    with WholeFiles() as first:
        first.add(tmp_path / "r").write(b"1")
        first.add(tmp_path / "s").write(b"1")
        with pytest.raises(OutputError, match="'s' cannot be written: another run is writing it"):
            write_all({tmp_path / "t": "2", tmp_path / "s": "2"})
        assert names(tmp_path) == [".r.new.tmp", ".s.new.tmp"]
    assert {path.read_text() for path in tmp_path.iterdir()} == {"1"}
    script = """
import sys, time
from pathlib import Path
from ldpaudit.work import files as writing
from ldpaudit.work.files import WholeFiles, write_all
r, s, me = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
real = Path.replace
Path.replace = lambda self, target: (time.sleep(0.02), real(self, target))
for _ in range(10):
    write_all({r: me, s: me})
"""
    words = [sys.executable, "-c", script, str(tmp_path / "r"), str(tmp_path / "s")]
    both = [subprocess.Popen([*words, me]) for me in ("2", "3")]
    assert ([one.wait(60) for one in both], names(tmp_path)) == ([0, 0], ["r", "s"])
    assert (tmp_path / "r").read_text() == (tmp_path / "s").read_text()


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_the_block(place):
    with Scratch() as scratch:
        assert not list(place.iterdir()), "made when it is first needed"
        assert scratch.folder.stat().st_mode & 0o777 == 0o700
        (scratch.folder / "a").write_text("text")
    assert not list(place.iterdir())


def test_an_error_removes_the_folder(place):
    with contextlib.suppress(KeyboardInterrupt), Scratch() as scratch:
        (scratch.folder / "a").touch()
        raise KeyboardInterrupt
    assert not list(place.iterdir())
    forgotten = Scratch()
    (forgotten.folder / "a").touch()
    del forgotten
    assert not list(place.iterdir())


def test_no_place_for_a_folder(monkeypatch):
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


def test_left_overs_of_a_killed_run_are_removed_by_the_next(place):
    command = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as held:
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
def test_sizes(text, size):
    assert (size_of(text), allowance(size)) == (size, size)


@pytest.mark.parametrize(
    "text", ["", "four", "4 apples", "-1GiB", "10MB", "0", "0.1", "1e9", "9999999T"]
)
def test_no_sizes(text):
    with pytest.raises(InputError, match=r"memory must be"):
        size_of(text)


def test_sizes_in_words():
    assert (shown(LEAST), shown(1.01 * 2**30)) == ("600 MiB", "1.1 GiB")
    assert 1 << 28 < allowance(None) <= machine_memory() // 2
