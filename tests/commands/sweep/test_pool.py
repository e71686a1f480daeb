"""Folders that go on, and points that fail alone."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from commands.sweep.conftest import asked

from ldpaudit.commands.sweep.run import SweepFolder, is_finished, manifest
from ldpaudit.errors import InputError
from ldpaudit.options import option_name


def started(request: Any, folder: SweepFolder, policy: str | None = None) -> None:
    with folder.alone():
        folder.open(manifest(request, 7, policy), resume=request.resume)


def test_a_folder_of_something_else_is_refused(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    folder, point = SweepFolder(out), asked(data, "randomized-response").points()[0]
    first = asked(data, "randomized-response", out=out)
    again = asked(data, "randomized-response", out=out, resume=True)
    started(again, folder)  # Nothing is there yet, so it starts.
    folder.keep(point, {"verdict": "pass"})
    with folder.alone(), pytest.raises(InputError, match="Another sweep"):
        started(again, folder)
    with pytest.raises(InputError, match="is not empty"):
        started(first, folder)
    started(again, folder)
    assert folder.kept(point) == {"verdict": "pass"}
    with pytest.raises(InputError, match="another policy"):
        started(again, folder, "f" * 64)
    others: dict[str, Any] = {"repeats": 2, "missing": "drop", "keep": ("x",), "smoothness": 2.0}
    others |= {"seeds_tried": 9, "made_on": date(2026, 1, 31), "attacks": ("mine.py:Mine",)}
    for name, value in others.items():
        other = asked(data, "randomized-response", out=out, resume=True, **{name: value})
        with pytest.raises(InputError, match=f"another {option_name(other, name)};"):
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
    draft = tmp_path / "out" / "points" / f".{point.key}.json.new.tmp"
    draft.write_text("{")
    started(request, folder)
    assert folder.kept(point) is None
    folder.keep(point, {"verdict": "pass"})
    assert not draft.exists()
