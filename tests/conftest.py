import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One thread for each process: several workers run side by side. Before NumPy and torch are loaded.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
# What the commands print is the same where GitHub runs the tests.
os.environ.pop("GITHUB_ACTIONS", None)

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from ldpaudit import cli  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent

# Examples are drawn anew on each run, but a slow machine is no failure.
settings.register_profile("ldpaudit", deadline=None)
settings.load_profile("ldpaudit")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public datasets beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the public datasets (../shared/data) are not on this machine")
    return folder


@pytest.fixture(autouse=True)
def _few_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands under test run the cheap attacks only, unless they ask for more."""
    monkeypatch.setenv("LDPAUDIT_BUDGET", "2")


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process; return its status and both outputs."""

    def call(*words: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ldpaudit", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call
