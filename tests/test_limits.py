"""A limit on the process's addresses: one line and a status of the contract, whatever happens."""

import subprocess
import sys
from pathlib import Path

import pytest

from ldpaudit import cli
from ldpaudit.cli import limits
from ldpaudit.reports.charts.svg import inline_svg


def limited(kibibytes: int, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line as after ``ulimit -v``."""
    script = f"ulimit -v {kibibytes}; exec {sys.executable} -m ldpaudit.cli " + " ".join(words)
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120)


def test_a_report_without_pictures_is_better_than_none(tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    words = "mechanism describe randomized-response --classes a,b --epsilon 1 --html"
    done = limited(3_000_000, words, str(page))
    assert (done.returncode, done.stderr) == (0, "")
    assert "This chart is not drawn" in page.read_text()


def test_far_too_little_is_one_line() -> None:
    done = limited(700_000, "demo")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "(ulimit -v) is 684 MiB; at least 1.2 GiB are needed" in done.stderr


@pytest.mark.parametrize(("ends", "status"), [(-6, 2), (127, 2), (3, 3), (1, 1), (0, 0)])
def test_whatever_becomes_of_the_child(
    ends: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(limits, "address_limit", lambda: 2 << 30)
    monkeypatch.setattr(limits, "_child", lambda: ends)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == status
    assert capsys.readouterr().err.count("\n") == (ends not in (0, 1, 3))


def test_what_libraries_say_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "failed to map segment from shared object"
    assert "more memory" in cli._one_line(ImportError(said))
    assert "more memory" in cli._one_line(MemoryError())
    assert "Internal fault" in cli._one_line(RuntimeError("the cell 'secret'"))
    monkeypatch.setattr("ldpaudit.work.memory.address_limit", lambda: 1 << 30)
    monkeypatch.setattr(
        "ldpaudit.work.memory.mmap.mmap", lambda *_, **__: (_ for _ in ()).throw(OSError)
    )
    assert "not drawn" in inline_svg({}, "t", "d", "k")
    assert inline_svg({}, "t", "d", "k-n", twin="k") == ""
