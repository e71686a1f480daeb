"""Processes below a cap, and folders that go on."""

import json
import os
import signal
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands.sweep.conftest import asked

from ldpaudit.commands.sweep.folder import SweepFolder, manifest
from ldpaudit.commands.sweep.workers import memory
from ldpaudit.commands.sweep.workers.pool import Pool
from ldpaudit.commands.sweep.workers.tasks import Answer, Setup
from ldpaudit.errors import InputError


def test_how_many_processes_fit() -> None:
    assert memory.workers_within(8.0, 3.0, 16) == 2
    assert memory.workers_within(8.0, 0.1, 4) == 4
    assert memory.workers_within(1.0, 3.0, 4) == 1
    assert memory.workers_within(1.0, 0.0, 4) == 1
    assert 0 < memory.peak() < 64
    assert memory.default_cap() > 0
    if os.path.exists("/proc/self/status"):  # noqa: PTH110
        assert 0 < memory.resident(os.getpid()) <= memory.peak()
    assert memory.resident(2**22 + 1) == 0


class _Silent:
    """A worker that holds some memory and answers nothing."""

    def __init__(self, task: Any, gib: float) -> None:
        self.task, self.memory, self.ready = task, gib, True
        self.process = SimpleNamespace(pid=2**22 + 1, wait=lambda: 0)
        self.connection = SimpleNamespace(close=lambda: None)


def watched(data: Path, cap: float, *sizes: float) -> tuple[Pool, deque[Any], list[Any]]:
    request = asked(data, "randomized-response", grid=("lambda", "0.1:0.3:3"))
    pool = Pool(Setup(request, 7, None, Path("none")), 3, cap)
    workers: Any = [_Silent(p, s) for p, s in zip(request.points(), sizes, strict=False)]
    pool._workers, queue, told = workers, deque(), []
    pool._watch(queue, lambda task, answer: told.append((task, answer)))
    return pool, queue, told


def test_above_the_cap_the_largest_gives_way_and_is_tried_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    assert watched(data, 6.0, 2.0, 3.0)[1:] == (deque(), [])
    pool, queue, told = watched(data, 4.0, 2.0, 3.0)
    assert [point.value for point in queue] == [0.2]
    assert not told
    assert pool._limit == 1
    # Alone it cannot give way.
    _, queue, told = watched(data, 2.0, 3.0)
    assert not queue
    assert "2 GiB that --memory allows" in told[0][1].reason


def started(request: Any, folder: SweepFolder, policy: str | None = None) -> None:
    folder.open(manifest(request, 7, policy), resume=request.resume)


def test_a_folder_of_something_else_is_refused(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    folder, point = SweepFolder(out), asked(data, "randomized-response").points()[0]
    first = asked(data, "randomized-response", out=out)
    again = asked(data, "randomized-response", out=out, resume=True)
    started(again, folder)  # Nothing is there yet, so it starts.
    folder.keep(point, {"verdict": "pass"})
    with pytest.raises(InputError, match="is not empty"):
        started(first, folder)
    started(again, folder)
    assert folder.kept(point) == {"verdict": "pass"}
    with pytest.raises(InputError, match="another policy"):
        started(again, folder, "f" * 64)
    other = asked(data, "randomized-response", out=out, resume=True, repeats=2)
    with pytest.raises(InputError, match="another --repeats"):
        started(other, folder)
    asked_for = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps(asked_for | {"version": "0"}))
    with pytest.raises(InputError, match="another version of ldpaudit"):
        started(again, folder)
    (out / "manifest.json").write_text(json.dumps(asked_for))
    content = data.read_bytes()
    data.write_bytes(content[:-1] + b"x")
    with pytest.raises(InputError, match="another data"):
        started(again, folder)
    data.write_bytes(content)
    (out / "manifest.json").unlink()
    with pytest.raises(InputError, match="no sweep"):
        started(again, folder)


def test_half_a_file_is_no_point(data: Path, tmp_path: Path) -> None:
    folder, point = SweepFolder(tmp_path / "out"), asked(data, "randomized-response").points()[0]
    request = asked(data, "randomized-response", out=tmp_path / "out", resume=True)
    started(request, folder)
    (tmp_path / "out" / "points" / f"{point.key}.json").write_text('{"verdict": "pa')
    (tmp_path / "out" / "points" / ".ldpaudit-0.tmp").write_text("{")
    started(request, folder)
    assert folder.kept(point) is None
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_a_process_that_is_killed_is_a_failed_point(data: Path) -> None:
    request = asked(data, "randomized-response", grid=("lambda", "0.2,0.4"))
    pool = Pool(Setup(request, 7, None, Path("none")), 1, 8.0)
    told: dict[Any, Answer] = {}

    def kill(worker: Any) -> None:
        os.kill(worker.process.pid, signal.SIGKILL)

    begin = pool._started

    def doomed(task: Any) -> Any:
        worker = begin(task)
        if len(told) == 0:
            kill(worker)
        return worker

    pool._started = doomed  # type: ignore[method-assign]
    try:
        pool.run(list(request.points()), lambda task, answer: told.update({task: answer}))
    finally:
        pool.stop()
    first, second = request.points()
    assert told[first].content is None
    assert "killed" in told[first].reason
    assert told[second].content is not None  # The other points go on.
    assert 0 < told[second].peak < 16
