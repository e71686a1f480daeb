"""The command line in this process, and child processes."""

import contextlib
import io
import signal
from pathlib import Path
from unittest.mock import patch

import pytest

from ldpaudit import cli


def heed_interrupts() -> None:
    """Undo, in a child, what a shell does to the jobs it puts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def called(*words: object) -> tuple[int, str]:
    """Run the command line in this process; return its status and everything that it printed."""
    printed = io.StringIO()
    with (
        patch("sys.argv", ["ldpaudit", *map(str, words)]),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        pytest.raises(SystemExit) as stopped,
    ):
        cli.main()
    return int(stopped.value.code or 0), printed.getvalue()


def refused(*words: object, folder: Path | None = None) -> str:
    """Run a command that must fail and leave a folder as it is; return its only line."""
    before = contents(folder)
    status, printed = called(*words)
    lines = [line for line in printed.splitlines() if not line.endswith("…")]
    assert (status, len(lines)) == (2, 1), printed
    assert contents(folder) == before
    return lines[0]


def contents(folder: Path | None) -> dict[Path, bytes]:
    """Return the files of a folder with what they hold."""
    files = () if folder is None else folder.rglob("*")
    return {path: path.read_bytes() for path in files if path.is_file()}
