"""Folders that go on, and points that fail alone."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from commands.sweep.conftest import asked

from ldpaudit.commands.sweep.folder import SweepFolder, is_finished, manifest
from ldpaudit.commands.sweep.points.workbench import Setup, measured
from ldpaudit.errors import InputError
from ldpaudit.tasks.interface import Answer
from ldpaudit.tasks.local import PREPARE, LocalProcesses
from ldpaudit.tasks.processes import Processes


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
    old = asked_for["digests"] | {"version": "0"}
    (out / "manifest.json").write_text(json.dumps(asked_for | {"digests": old}))
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


def test_a_file_of_another_shape_is_no_point() -> None:
    for content in (None, {}, {"a": 1}, {"verdict": "pass", "result": {}}):
        assert not is_finished(content)


def test_half_a_file_is_no_point(data: Path, tmp_path: Path) -> None:
    folder, point = SweepFolder(tmp_path / "out"), asked(data, "randomized-response").points()[0]
    request = asked(data, "randomized-response", out=tmp_path / "out", resume=True)
    started(request, folder)
    (tmp_path / "out" / "points" / f"{point.key}.json").write_text('{"verdict": "pa')
    points = tmp_path / "out" / "points"
    (points / ".ldpaudit-0123456789abcdef.tmp").write_text("{")
    (points / ".notes.tmp").write_text("of somebody else")
    started(request, folder)
    assert folder.kept(point) is None
    assert [path.name for path in (tmp_path / "out").rglob("*.tmp")] == [".notes.tmp"]


def test_a_process_that_is_killed_is_a_failed_point(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked(data, "randomized-response", grid=("lambda", "0.2,0.4"))
    answers: dict[int, Answer] = {}
    setup = Setup(request, 7, None, Path("none"))
    with Processes(PREPARE, None, 1, gib=8.0) as pool:
        begin = pool._started

        def doomed() -> Any:
            child = begin()
            if not answers:
                os.kill(child.process.pid, signal.SIGKILL)
            return child

        monkeypatch.setattr(pool, "_started", doomed)
        for number, answer in LocalProcesses(pool, tmp_path).answers(
            measured, request.points(), setup
        ):
            answers[number] = answer
    assert answers[0].content is None
    assert "killed" in answers[0].reason
    assert answers[1].content is not None  # The other points go on.
