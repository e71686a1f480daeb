import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ldpaudit import cli

Ran = tuple[int, str, str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run ``ldpaudit mechanism …`` in this process; return its status and both outputs."""

    def call(*words: Any) -> Ran:
        monkeypatch.setattr(sys, "argv", ["ldpaudit", "mechanism", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


@pytest.fixture
def result(command: Callable[..., Ran], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run a command that must succeed; return its JSON result."""

    def call(*words: Any) -> dict[str, Any]:
        path = tmp_path / "result.json"
        status, _, err = command(*words, "--json", path)
        assert status == 0, err
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    return call


@pytest.fixture
def prior(tmp_path: Path) -> Callable[..., Path]:
    """Write a prior file from labels and probabilities."""

    def write(labels: Any, probabilities: Any, name: str = "prior.csv") -> Path:
        path = tmp_path / name
        rows = "".join(f"{y},{p!r}\n" for y, p in zip(labels, probabilities, strict=True))
        path.write_text(f"label,probability\n{rows}")
        return path

    return write
