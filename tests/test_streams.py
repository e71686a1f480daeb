"""Standard output that lacks the letters of a text."""

import errno
import io
import sys
from collections.abc import Callable

import pytest

from ldpaudit.cli.streams import steady_streams
from ldpaudit.terminal import say, stream


def written(printing: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> bytes:
    content = io.BytesIO()
    terminal = io.TextIOWrapper(content, encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    with steady_streams():
        printing("é: ε = 1")
    monkeypatch.undo()
    return content.getvalue()


def test_a_letter_that_the_terminal_lacks_becomes_a_question_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert written(say, monkeypatch).decode("latin-1") == "é: ? = 1\n"


def test_a_report_is_in_utf_8_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(stream, monkeypatch).decode("utf-8") == "é: ε = 1"


class Full(io.StringIO):
    """A stream on a disk that has no room."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def flush(self) -> None:
        raise self.error


def test_a_report_that_is_lost_is_told_and_changes_no_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for broken in (Full(OSError(errno.ENOSPC, "No space left on device")), None):
        monkeypatch.setattr(sys, "stdout", broken)
        with steady_streams():
            steady = sys.stdout
            stream("{}")
        assert capsys.readouterr().err.count("Standard output is lost") == 1
    steady.close()


def test_a_reader_that_has_enough_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Full(BrokenPipeError()))
    with steady_streams():
        stream("{}")
