"""Commands that are ended by signals at random moments, and what they leave behind.

A command runs in a process that is forked from one that has imported everything, so that a run
costs what the work costs. Its temporary files have a folder of their own.
"""

import importlib
import json
import os
import random
import re
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

LIMIT: Final = 60.0
"""Seconds after which a command hangs."""
DRAFT: Final = re.compile(r"\..+\.(new|old)\.tmp")
SCRATCH: Final = "ldpaudit-scratch-"


@dataclass(frozen=True)
class Command:
    """A command that is run again and again.

    Attributes
    ----------
    name : str
    words : callable
        From the folder of inputs and that of outputs to the words.
    made : tuple of str
        What it writes, by name in the folder of outputs.
    private : tuple of str
        Of these, what only its owner may read.
    replaces : bool
        Whether it can be run over its own outputs.
    grows : tuple of str
        How the names of files begin that are kept one after the other, for a later run.
    again : tuple of str
        What the next run after one that was killed is told besides.
    """

    name: str
    words: Callable[[Path, Path], list[str]]
    made: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    replaces: bool = True
    grows: tuple[str, ...] = ()
    again: tuple[str, ...] = ()


@dataclass
class Ended:
    """How a command ended."""

    status: int
    said: str
    seconds: float
    left: bool = False
    """Whether anything with a temporary name was left, before the next run."""


@dataclass
class Place:
    """The folders of one run: outputs and temporary files."""

    folder: Path
    out: Path = field(init=False)
    temporary: Path = field(init=False)

    def __post_init__(self) -> None:
        self.out, self.temporary = self.folder / "out", self.folder / "temporary"
        self.out.mkdir(parents=True)
        self.temporary.mkdir()

    def files(self) -> dict[str, int]:
        """Return which files are in the folder of outputs: their numbers on the disk."""
        found = (path for path in sorted(self.out.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.out)): path.stat().st_ino for path in found}

    def left(self) -> list[str]:
        """Return what has a temporary name, or lies in the folder for temporary files."""
        drafts = (path for path in self.out.rglob("*") if path.name.startswith("."))
        temporary = (path for path in self.temporary.iterdir() if not _is_trial(path))
        return [path.name for path in (*drafts, *temporary)]


def _is_trial(path: Path) -> bool:
    """Return whether Python itself wrote it, to try the folder: a kill may come just then."""
    return bool(re.fullmatch(r"[a-z0-9_]{8}", path.name)) and path.read_bytes() in (b"", b"blat")


def started(words: list[str], inputs: Path, place: Place, prepare: Callable[[], object]) -> int:
    """Run a command in a fork, after ``prepare``; return its process."""
    process = os.fork()
    if process:
        return process
    status = 70
    try:
        _child(words, inputs, place, prepare)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _child(words: list[str], inputs: Path, place: Place, prepare: Callable[[], object]) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with (place.folder / "said").open("wb") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    os.environ |= {"TMPDIR": str(place.temporary)}
    tempfile.tempdir = None
    os.chdir(inputs)
    sys.argv = ["ldpaudit", *words]
    from ldpaudit.work.interruption import heeded

    with heeded():  # As ldpaudit.__main__ does.
        (place.folder / "ready").touch()
        from ldpaudit.cli import main

        prepare()
        main()


def ended(process: int, place: Place, began: float) -> Ended:
    """Wait for the end of a command."""
    while time.monotonic() - began < LIMIT:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            said = (place.folder / "said").read_text(errors="replace")
            return Ended(os.waitstatus_to_exitcode(status), said, time.monotonic() - began)
        time.sleep(0.0005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise AssertionError("the command hangs")


def nothing() -> None:
    """Do nothing."""


def run(
    command: Command, inputs: Path, place: Place, prepare: Callable[[], object] = nothing
) -> Ended:
    """Run a command to its end."""
    process = begun(command, inputs, place, prepare)
    return ended(process, place, time.monotonic())


def begun(
    command: Command, inputs: Path, place: Place, prepare: Callable[[], object] = nothing
) -> int:
    """Start a command, and wait until it heeds signals; return its process."""
    process = started(command.words(inputs, place.out), inputs, place, prepare)
    while not (place.folder / "ready").exists():
        time.sleep(0.0001)
    (place.folder / "ready").unlink()
    return process


def killed(
    command: Command,
    inputs: Path,
    place: Place,
    numbers: tuple[int, ...],
    moment: float,
    rng: random.Random,
) -> Ended:
    """Run a command and send it signals: the first at a moment, others soon after."""
    process, began = begun(command, inputs, place), time.monotonic()
    time.sleep(moment)
    for number in numbers:
        with suppress(ProcessLookupError):
            os.kill(process, number)
        time.sleep(rng.choice((0.0, 0.0002, 0.002, 0.02)) if len(numbers) > 1 else 0.0)
    return ended(process, place, began)


def faults(
    command: Command, place: Place, before: dict[str, int], ended: Ended, usual: int, kill: bool
) -> Iterator[str]:
    """Yield what is wrong with how a command ended, and with what it left."""
    after, left = place.files(), place.left()
    visible = {
        name: content
        for name, content in after.items()
        if Path(name).name[0] != "." and not name.startswith(command.grows or "\0")
    }
    new = [name for name in command.made if visible.get(name) != before.get(name)]
    if new and len(new) < len(command.made):
        yield f"some files are new and some are old: {new}"
    if stray := visible.keys() - before.keys() - set(command.made):
        yield f"other files: {sorted(stray)}"
    if lost := before.keys() - visible.keys():
        yield f"files are lost: {sorted(lost)}"
    for name in command.private:
        path = place.out / name
        if path.exists() and stat.S_IMODE(path.stat().st_mode) != 0o600:
            yield f"{name} is not private"
    yield from (f"{name} is broken" for name in visible if broken(place.out / name))
    if workers := list(processes_of(place)):
        yield f"{len(workers)} processes are left"
    if kill:
        yield from (
            f"left over: {name}"
            for name in left
            if not DRAFT.fullmatch(name) and not name.startswith(SCRATCH)
        )
        return
    yield from (f"left over: {name}" for name in left)
    if "Traceback" in ended.said or "Exception ignored" in ended.said:
        yield f"a traceback: {ended.said[-2000:]}"
    if ended.status == 2:
        if new:
            yield "status 2, but the files are new"
        if "Interrupted" not in (ended.said.strip().splitlines() or [""])[-1]:
            yield f"no line says why: {ended.said[-300:]!r}"
    elif ended.status not in (usual, 3):
        yield f"status {ended.status}: {ended.said[-300:]!r}"
    elif command.made and not new:
        yield f"status {ended.status}, but the files are old"


def broken(path: Path) -> bool:
    """Return whether a file is no whole one of its kind."""
    try:
        if path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".html":
            return not path.read_text().rstrip().endswith("</html>")
    except (OSError, ValueError, pa.ArrowException):
        return True
    return not path.stat().st_size


def processes_of(place: Place) -> Iterator[psutil.Process]:
    """Yield the processes that a run started and that outlived it by a second."""
    until = time.monotonic() + 2.0
    while True:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TMPDIR", "").startswith(str(place.folder)):
                    found.append(process)
        if not found or time.monotonic() > until:
            yield from found
            return
        time.sleep(0.1)


def import_everything(commands: list[Command], inputs: Path, folder: Path) -> dict[str, Ended]:
    """Run each command once, and import here what it imported; return how each ended usually.

    The second run of each is measured.
    """
    usual = {}
    for number, command in enumerate(commands):
        first = Place(folder / f"first-{number}")
        _import_like(command, inputs, first)
        second = Place(folder / f"second-{number}")
        usual[command.name] = run(command, inputs, second)
        found = set(second.files())
        assert set(command.made) <= found, (command.name, found, usual[command.name])
        assert usual[command.name].status in (0, 1, 3), (command.name, usual[command.name])
    return usual


def _import_like(command: Command, inputs: Path, place: Place) -> None:
    listed = place.folder / "modules"
    process = os.fork()
    if not process:
        with suppress(BaseException):
            _child(command.words(inputs, place.out), inputs, place, nothing)
        listed.write_text("\n".join(sys.modules))
        os._exit(0)
    os.waitpid(process, 0)
    for name in listed.read_text().splitlines():
        if name not in sys.modules and "." not in name.rpartition(".")[2]:
            with suppress(BaseException):
                importlib.import_module(name)


Case = tuple[str, tuple[int, ...]]
SIGNALS: Final[tuple[Case, ...]] = (
    ("KILL", (signal.SIGKILL,)),
    ("TERM", (signal.SIGTERM,)),
    ("INT", (signal.SIGINT,)),
    ("2×INT", (signal.SIGINT, signal.SIGINT)),
    ("HUP", (signal.SIGHUP,)),
)


def one_case(
    command: Command,
    inputs: Path,
    folder: Path,
    usual: Ended,
    case: Case,
    rng: random.Random,
    over: Path | None,
) -> tuple[Ended, list[str]]:
    """Send one signal, or two, at a random moment; return how it ended, and what is wrong.

    After a kill the command runs once more, and nothing may be left over then.
    """
    place = Place(folder)
    if over is not None:
        shutil.copytree(over, place.out, dirs_exist_ok=True)
    before = place.files()
    name, numbers = case
    moment = rng.uniform(0.0, 1.05 * usual.seconds)
    found = killed(command, inputs, place, numbers, moment, rng)
    wrong = list(faults(command, place, before, found, usual.status, name == "KILL"))
    found.left = bool(place.left())
    if name == "KILL" and found.left:
        words = command.words
        going_on = replace(command, words=lambda *places: [*words(*places), *command.again])
        again = run(going_on, inputs, place)
        wrong += [f"left after the next run: {one}" for one in place.left()]
        if again.status != usual.status:
            wrong.append(f"the next run ended with {again.status}: {again.said[-300:]!r}")
    return found, wrong
