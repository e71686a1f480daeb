"""Processes within a time limit and below a cap of memory, whatever their tasks do."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from ldpaudit.errors import InputError
from ldpaudit.tasks import processes
from ldpaudit.tasks.interface import Answer
from ldpaudit.tasks.processes import Processes, processes_within

HERE = f"{Path(__file__).stem}:prepare"


def prepare(folder: str) -> Callable[[Any], Any]:
    """What each process runs: a task is the name of what is to be done, and a number."""
    if folder == "refused":
        raise InputError("The data\ncannot be read.")

    def do(task: tuple[str, Any]) -> Any:
        what, value = task
        if what == "square":
            return value**2
        if what == "raise":
            raise ValueError("a secret cell")
        if what == "refuse":
            raise InputError("It is out of range.")
        if what == "exit":
            os._exit(value)
        if what == "grow":
            _ = b"x" * (value << 20)
            time.sleep(60)
        if what == "hang":
            child = subprocess.Popen(["sleep", "60"])
            (Path(folder) / "pids").write_text(f"{os.getpid()} {child.pid}")
            time.sleep(60)
        return os.environ["OMP_NUM_THREADS"]

    return do


@pytest.fixture(autouse=True)
def children_import_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


def answers(pool: Processes, *tasks: tuple[str, Any]) -> list[Answer]:
    with pool:
        done = dict(pool.run(tasks))
    assert sorted(done) == list(range(len(tasks)))
    return [done[number] for number in sorted(done)]


def test_every_task_has_its_answer_and_a_process_is_used_again() -> None:
    pool = Processes(HERE, "", 2, threads=3)
    with pool:
        first = dict(pool.run([("square", i) for i in range(6)]))
        pids = {child.process.pid for child in pool._idle}
        assert {n: answer.content for n, answer in first.items()} == {i: i**2 for i in range(6)}
        assert dict(pool.run([("threads", 0)]))[0].content == "3"
        assert {child.process.pid for child in pool._idle} == pids
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_what_goes_wrong_is_one_line_and_the_others_go_on() -> None:
    tasks = (("raise", 0), ("refuse", 0), ("exit", 7), ("exit", 0), ("square", 3))
    fault, refused, seven, zero, square = answers(Processes(HERE, "", 1), *tasks)
    assert fault.reason == "Internal fault (ValueError)."
    assert refused.reason == "It is out of range."
    assert (seven.status, zero.status) == (7, 0)
    assert "status 7" in seven.reason
    assert square == Answer(9)


def test_what_cannot_be_prepared_fails_every_task() -> None:
    for answer in answers(Processes(HERE, "refused", 2), ("square", 1), ("square", 2)):
        assert answer.reason == "The data cannot be read."


def test_what_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    start = time.monotonic()
    pool = Processes(HERE, str(tmp_path), 1, seconds=3.0)
    late, square = answers(pool, ("hang", 0), ("square", 3))
    assert late.late
    assert "longer than 3 s" in late.reason
    assert square.content == 9
    assert time.monotonic() - start < 15
    assert all(_is_gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def _is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = f"from ldpaudit.tasks.processes import Processes\nwith Processes({HERE!r}, "
    code += f"{str(tmp_path)!r}, 1) as pool: list(pool.run([('hang', 0)]))"
    parent = subprocess.Popen([sys.executable, "-c", code])
    pids = tmp_path / "pids"
    while parent.poll() is None and not (pids.exists() and " " in pids.read_text()):
        time.sleep(0.05)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    child, started = map(int, pids.read_text().split())
    deadline = time.monotonic() + 10
    while not (_is_gone(child) and _is_gone(started)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _is_gone(child)
    assert _is_gone(started)


def test_a_task_that_outgrows_the_cap_fails_alone() -> None:
    large, square = answers(Processes(HERE, "", 2, gib=0.5), ("grow", 900), ("square", 3))
    assert "0.5 GiB that --memory allows" in large.reason
    assert square.content == 9


def test_how_many_processes_fit() -> None:
    assert processes_within(8.0, 3.0, 16) == 2
    assert processes_within(8.0, 0.1, 4) == 4
    assert processes_within(1.0, 3.0, 4) == 1
    assert processes_within(1.0, 0.0, 4) == 1
    assert processes.default_cap() > 0


def _pool(gib: float, *sizes: float) -> tuple[Processes, deque[int], list[Any]]:
    """Return a pool of processes that hold some memory and answer nothing, looked at once."""
    pool = Processes(HERE, "", 3, gib=gib)
    children: list[Any] = [
        SimpleNamespace(
            number=number,
            size=lambda size=size: size,
            process=SimpleNamespace(pid=2**22 + 1, terminate=lambda: None, wait=lambda *_: 0),
            connection=SimpleNamespace(close=lambda: None),
        )
        for number, size in enumerate(sizes)
    ]
    pool._busy, queue = children, deque[int]()
    return pool, queue, list(pool._too_large(queue))


def test_above_the_cap_the_largest_gives_way_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    assert _pool(6.0, 2.0, 3.0)[1:] == (deque(), [])
    pool, queue, failed = _pool(4.0, 2.0, 3.0)
    assert list(queue) == [1]
    assert not failed
    assert pool._room == 1
    # Alone it cannot give way.
    _, queue, failed = _pool(2.0, 3.0)
    assert not queue
    assert failed[0][0] == 0
    assert "2 GiB that --memory allows" in failed[0][1].reason


def test_below_a_cap_the_first_task_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, most = Processes(HERE, "", 4, gib=64.0), []
    give = pool._give

    def counted(number: int, tasks: Any) -> None:
        give(number, tasks)
        most.append((number, len(pool._busy)))

    monkeypatch.setattr(pool, "_give", counted)
    answers(pool, *[("square", i) for i in range(6)])
    assert most[0] == (0, 1)
    assert max(busy for _, busy in most) > 1
