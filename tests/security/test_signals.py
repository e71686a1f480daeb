"""Signals: one line, a status of the contract, files all new or all old, and nothing left over."""

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest
from joblib import Parallel
from killing.commands import COMMANDS, SLOW, _of, write_inputs
from killing.running import DRAFT, SIGNALS, Ended, Place, faults, one_case, processes_of, run

from ldpaudit.commands import shell
from ldpaudit.extras.choose.sweep.run import SweepRun
from ldpaudit.extras.kinds.files.written import TableFile
from ldpaudit.work import interruption

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_NAME = {command.name: command for command in (*COMMANDS, *SLOW)}
SAID = f"ldpaudit: {interruption.INTERRUPTED}"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def ready(inputs, tmp_path_factory):
    """Return a place with the outputs of ``privatize``."""
    place = Place(tmp_path_factory.mktemp("ready"))
    assert run(BY_NAME["privatize"], inputs, place).status == 0
    return place


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def at(owner, name, *numbers):
    """Return what lets the process get signals whenever a function is called."""

    def prepare():
        real = getattr(owner, name)

        def called(*given, **more):
            for number in numbers:
                os.kill(os.getpid(), number)
            return real(*given, **more)

        setattr(owner, name, called)

    return prepare


@pytest.mark.parametrize(
    ("numbers", "over"),
    [
        ((signal.SIGINT,), True),
        ((signal.SIGINT, signal.SIGINT), False),
        ((signal.SIGTERM, signal.SIGTERM), True),
        ((signal.SIGHUP,), False),
    ],
)
@pytest.mark.parametrize(
    ("owner", "name", "late"),
    [
        (TableFile, "write", False),
        (os, "fsync", False),
        (Path, "replace", True),
        (shell, "tell", True),
    ],
    ids=["writing", "to the disk", "renaming", "printing"],
)
def test_a_signal_at_any_step_of_privatize(owner, name, late, numbers, over, inputs, ready, place):
    """Once the files take their names it is too late: they are there, and the status says so."""
    command = BY_NAME["privatize"]
    if over:
        shutil.copytree(ready.out, place.out, dirs_exist_ok=True)
    before = place.files()
    ended = run(command, inputs, place, at(owner, name, *numbers))
    assert ended.status == (0 if late else 2), ended.said
    assert list(faults(command, place, before, ended, 0, kill=False)) == []
    assert (SAID in ended.said, ended.said.count("Interrupted")) == (not late, 1)


@pytest.mark.parametrize("name", ["privatize --remember", "declare"])
@pytest.mark.parametrize("case", SIGNALS, ids=[name for name, _ in SIGNALS])
def test_a_signal_at_a_random_moment(name, case, inputs, tmp_path):
    """Many more are sent by `python -m benchmarks signals`."""
    usual = Ended(0, "", 0.25)
    _, wrong = one_case(
        BY_NAME[name], inputs, tmp_path, usual, case, random.Random(f"{name} {case}"), None
    )
    assert wrong == []


def test_a_second_interruption_while_the_line_is_printed(inputs, place):
    def prepare():
        at(interruption, "tell", *NUMBERS)()
        at(TableFile, "write", signal.SIGINT)()

    ended = run(BY_NAME["privatize"], inputs, place, prepare)
    assert (ended.status, ended.said.splitlines()[-1], place.files()) == (2, SAID, {})


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_while_something_is_imported(number, inputs, place):
    def prepare():
        class Finder:
            def find_spec(self, name, *_):
                if name.endswith("privatize.work"):
                    os.kill(os.getpid(), number)

        for name in [name for name in sys.modules if name.endswith("privatize.work")]:
            del sys.modules[name]
        sys.meta_path.insert(0, Finder())

    ended = run(BY_NAME["privatize"], inputs, place, prepare)
    assert (ended.status, ended.said) == (2, f"{SAID}\n")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_sweep_leaves_no_folder_and_no_generator(number, inputs, place):
    """Without --out what it keeps has a temporary folder."""

    class Here:
        client = folder = None

        def answers(self, *_):
            assert list(place.temporary.rglob("manifest.json"))
            assert stat_of(place.temporary) == {0o700}
            next(place.temporary.rglob("manifest.json")).with_name("generator.npz").touch()
            os.kill(os.getpid(), number)
            yield 0, None

    def prepare():
        mock.patch.object(SweepRun, "_pool", return_value=nullcontext(Here())).start()

    ended = run(BY_NAME["sweep"], inputs, place, prepare)
    assert ended.status == 2, ended.said
    assert ended.said.splitlines()[-1].startswith("ldpaudit: Interrupted; nothing was kept.")
    assert (place.files(), place.left()) == ({}, [])


def stat_of(folder):
    return {path.stat().st_mode & 0o777 for path in folder.iterdir()}


def test_no_process_is_left(inputs, place):
    """The demo audits in processes, which write no files: they are killed with it."""
    command = _of("demo", "demo --folder >demo", "", grows="demo/")
    ended = run(command, inputs, place, at(Parallel, "_wait_retrieval", signal.SIGTERM))
    assert ended.status == 2
    assert ended.said.splitlines()[-1].startswith("ldpaudit: Interrupted; the releases are written")
    assert sorted(place.files()) == [
        "demo/dishonest.parquet",
        "demo/honest.parquet",
        "demo/truth.parquet",
    ]
    assert (place.left(), list(processes_of(place))) == ([], [])


def test_a_signal_while_a_process_is_waited_for(inputs, place):
    prepare = at(Parallel, "_wait_retrieval", signal.SIGTERM)
    ended = run(BY_NAME["mechanism audit"], inputs, place, prepare)
    assert (ended.status, ended.said.splitlines()[-1]) == (2, SAID)
    assert (place.files(), place.left()) == ({}, [])


def test_a_killed_run_leaves_drafts_that_the_next_one_removes(inputs, ready, place):
    command = BY_NAME["privatize"]
    shutil.copytree(ready.out, place.out, dirs_exist_ok=True)
    before = place.files()
    ended = run(command, inputs, place, at(Path, "replace", signal.SIGKILL))
    assert ended.status == -signal.SIGKILL
    drafts = [path for path in place.out.iterdir() if DRAFT.fullmatch(path.name)]
    assert len(drafts) == 4, "two new files, and what was there before"
    assert sum(path.stat().st_mode & 0o777 == 0o600 for path in drafts) == 2
    assert list(faults(command, place, before, ended, 0, kill=True)) == []
    assert (run(command, inputs, place).status, place.left()) == (0, [])


def test_a_forked_process_ends_by_itself():
    """What a library forks may be ended without an end of the command."""
    script = (
        "import os, signal, time\n"
        "from ldpaudit.work.interruption import heeded\n"
        "with heeded():\n"
        "    read, write = os.pipe()\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        os.write(write, b'.')  # A signal that comes before is lost, in Python.\n"
        "        time.sleep(9)\n"
        "        os._exit(9)\n"
        "    os.read(read, 1)\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("-15\n", "", 0)


def test_nothing_is_heeded_that_was_ignored():
    """As under nohup."""
    script = (
        "import os, signal\n"
        "from ldpaudit.work.interruption import heeded\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with heeded(): os.kill(os.getpid(), signal.SIGHUP)\n"
        "print('on')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("on\n", 0)
