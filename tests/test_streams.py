"""Standard output that lacks the letters of a text."""

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
