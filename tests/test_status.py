"""A status is never wrong: what fails before a command can answer ends with 2, whatever it is."""

import functools
import gc
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import CodeType, FrameType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit import __main__ as program
from ldpaudit import cli
from ldpaudit.terminal import remark, say, show

HOSTILE = "a\x1b]0;forged\x07\u202eb"
COMMANDS = [
    *([one] for one in cli._commands().commands if one not in ("policy", "mechanism")),
    *(["policy", one] for one in cli._commands().commands["policy"].commands),
    *(["mechanism", one] for one in cli._commands().commands["mechanism"].commands),
]
# Where the program itself begins; what a command does is tested with the command.
BEGINS = "__main__: main"
EARLY = ("__main__", "cli/__init__", "cli/process", "work/interruption", "cli/parameters")


@pytest.fixture
def as_before():
    """Signals, hooks and streams, as they were."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    kept = {number: signal.getsignal(number) for number in numbers}
    streams, hook = (sys.stdout, sys.stderr), sys.unraisablehook
    yield
    sys.setprofile(None)
    sys.unraisablehook, (sys.stdout, sys.stderr) = hook, streams
    for number, handler in kept.items():
        signal.signal(number, handler)


@functools.cache
def early_step(code: CodeType) -> str | None:
    """Return the name of a step before the command, None for any other function."""
    place = Path(code.co_filename).with_suffix("")
    step = f"{place.name}: {code.co_qualname}"
    return step if str(place).endswith(EARLY) and step != BEGINS else None


class Failing:
    """Lets the step of the program that is called at one place fail; counts those before it."""

    def __init__(self, at: int, error: Exception) -> None:
        self.at, self.error = at, error
        self.seen: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        step = early_step(frame.f_code)
        if step is None or step in self.seen:
            return
        self.seen.append(step)
        # What ends a block cannot be made to fail from here: Python ignores it in a finaliser.
        if len(self.seen) == self.at:
            sys.setprofile(None)
            raise self.error


def ended(words: list[str], failing: Failing) -> object:
    sys.argv = ["ldpaudit", *words]
    # A generator that the run before left unfinished is not ended within this one.
    gc.disable()
    sys.setprofile(failing)
    try:
        program.main()
    except SystemExit as stopped:
        return stopped.code
    finally:
        sys.setprofile(None)
        gc.enable()
    return "no status"


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_early_step_that_fails_ends_with_2(words, monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    words = [*words, "--no-such-option"]  # No command does anything: the status is 2 anyway.
    steps = 1
    while True:
        failing = Failing(steps, OSError(28, "No space left on device"))
        status = ended(words, failing)
        assert status == 2, (status, failing.seen[-1:])
        assert "Traceback" not in capfd.readouterr().err
        if len(failing.seen) < steps:
            break
        steps += 1
    assert steps > 15  # A test that reaches no step finds none that fails.
    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("missing", ["ldpaudit.work.interruption", "ldpaudit.cli"])
def test_a_part_of_the_program_that_cannot_be_loaded_ends_with_2(missing, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "ldpaudit.cli":
        monkeypatch.delattr("ldpaudit.cli")
    assert ended(["policy", "show", "ldpaudit:default"], Failing(0, OSError())) == 2
    assert capfd.readouterr().err == "ldpaudit: It could not start: ModuleNotFoundError.\n"


def nothing_can_be_written() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def no_folder() -> None:
    """No folder for temporary files can be written."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    place = tmp_path_factory.mktemp("full") / "table.parquet"
    pq.write_table(pa.table({"label": ["no", "yes"] * 40, "age": range(80)}), place)
    return place


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (
            (
                "run",
                "table.parquet",
                "--mechanism=rr",
                "--epsilon=1",
                "--only=mechanism",
                "--html=page.html",
            ),
            2,
        ),
        (("policy", "check", "none.toml"), 2),
        (("policy", "init"), 2),
        # It writes nothing, and answers.
        (("mechanism", "describe", "rr", "--epsilon=1", "--classes=a,b"), 0),
        (("privatize", "table.parquet", "-o", "out.parquet", "--mechanism=rr", "--epsilon=1"), 2),
    ],
)
def test_a_full_disk_is_no_verdict(words, status, table):
    before = {*table.parent.iterdir()}
    done = subprocess.run(
        [sys.executable, "-m", "ldpaudit", *words],
        cwd=table.parent,
        preexec_fn=nothing_can_be_written,
        env=os.environ | {"LDPAUDIT_EFFORT": "small"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert str(table.parent) not in done.stderr
    assert {*table.parent.iterdir()} == before


@pytest.mark.parametrize("framed", [False, True])
def test_no_text_moves_the_cursor_of_a_terminal(framed, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: framed, raising=False)
    say(f"Wrote {HOSTILE}.\nA second line.")
    show(f"Of {HOSTILE}", ["class", HOSTILE], [[HOSTILE, "1"]])
    remark(HOSTILE)
    printed = "".join(capsys.readouterr())
    assert not {*"\x07\u202e"} & {*printed}
    assert "\x1b]" not in printed
    assert "⟨001B⟩" in printed
    assert "\nA second line.\n" in printed
