"""What the command line offers to a shell: completion, variables of the environment, signals."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ldpaudit import cli
from ldpaudit.cli import limits
from ldpaudit.cli.parameters import completer


def completed(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return what bash is offered for the last word."""
    monkeypatch.setenv("_LDPAUDIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"ldpaudit {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("comp", ["compare"]),
        ("mechanism des", ["describe", "design"]),
        ("run --on", ["--only"]),
        ("run --only m", ["mechanism"]),
        ("run --skip ren", ["renyi"]),
        ("sweep x.csv --mechanism double", ["double-rr"]),
        ("privatize x.csv --mechanism rr", ["rr-top-k", "rr-on-bins", "rr"]),
        ("mechanism describe stair", ["staircase"]),
        ("run x.parquet --metric l", ["l2", "learned"]),
    ],
)
def test_names_are_completed(
    words: str,
    offered: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert completed(words, monkeypatch, capsys) == offered


def test_files_are_left_to_the_shell_and_nothing_heavy_is_imported() -> None:
    assert completer("--truth") is None
    code = (
        "import ldpaudit.cli, sys; print(*{'numpy', 'pandas', 'torch', 'scipy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_LDPAUDIT_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit):
        cli.main()
    assert f"complete_{shell}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variables", "words", "named"),
    [
        ({"SEED": "abc"}, [], "LDPAUDIT_SEED"),
        ({"SEED": "-1"}, [], "LDPAUDIT_SEED"),
        ({"SEEDS_TRIED": "-1"}, [], "LDPAUDIT_SEEDS_TRIED"),
        ({"METRIC": "l3", "NEIGHBORS": "5"}, [], "LDPAUDIT_METRIC"),
        ({"QUERIES": "some"}, ["--seed", "1"], "LDPAUDIT_QUERIES"),
        ({"SEED": "1"}, ["--seed=abc"], ""),
        ({"SEED": "1"}, ["--neighbors", "-1"], ""),
    ],
)
def test_a_mistake_in_the_environment_is_told_by_its_variable(
    variables: dict[str, str],
    words: list[str],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"LDPAUDIT_{name}", value)
    file = tmp_path / "release.csv"
    file.write_text("x,label\n1,a\n2,b\n")
    monkeypatch.setattr(sys, "argv", ["ldpaudit", "run", str(file), *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.rstrip().endswith(f"({named}: set in the environment)" if named else line.rstrip())
    assert ("LDPAUDIT_" in line) == bool(named)


@pytest.fixture
def kept_handlers() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("kept_handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_parent_reaches_the_child(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = []

    class Child:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def send_signal(self, number: int) -> None:
            got.append(number)

        def wait(self) -> int:
            os.kill(os.getpid(), number)
            return 3

    monkeypatch.setattr(subprocess, "Popen", Child)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert limits._child() == 3
    assert got == [number]
