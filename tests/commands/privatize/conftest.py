"""Small tables with true labels, and the command line in this process."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ldpaudit import cli
from ldpaudit.datasets import parse_declaration
from ldpaudit.release import ColumnsDeclaration

Command = Callable[..., tuple[int, str]]
ROWS = 2000


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``ldpaudit privatize``; return its status and everything that it printed."""

    def call(*words: Any) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["ldpaudit", "privatize", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), "".join(capsys.readouterr())

    return call


def refused(command: Command, folder: Path, *words: Any) -> str:
    """Run a command that must fail and leave the folder as it is; return its message."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    status, printed = command(*words)
    assert status == 2, printed
    lines = [line for line in printed.splitlines() if not line.endswith("…")]
    assert len(lines) == 1, printed
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return lines[0]


def frame(rows: int = ROWS, seed: int = 1) -> pd.DataFrame:
    """Return features and three true labels: words, whole numbers 0 … 10, and booleans."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, rows)
    return pd.DataFrame(
        {
            "x": rng.standard_normal(rows) + codes,
            "town": rng.choice(["oslo", "rome", "bonn"], rows),
            "label": np.array(["no", "perhaps", "yes"])[codes],
            "count": rng.integers(0, 100, rows),
            "weeks": rng.integers(0, 11, rows),
            "flag": rng.integers(0, 2, rows).astype(bool),
        }
    )


def audit(monkeypatch: pytest.MonkeyPatch, *words: Any) -> int:
    fast = ("--only", "mechanism", "--only", "power", "--quiet")
    monkeypatch.setattr(sys, "argv", ["ldpaudit", "run", *map(str, words), *fast])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The table as a Parquet file, in a folder of its own."""
    path = tmp_path / "data.parquet"
    frame().to_parquet(path)
    return path


def declared(path: Path) -> ColumnsDeclaration:
    """Return the declaration inside a release."""
    return parse_declaration(pq.read_schema(path).metadata[b"ldpaudit"])


def declared_json(path: Path) -> Any:
    """Return the declaration as it is written."""
    return json.loads(pq.read_schema(path).metadata[b"ldpaudit"])
