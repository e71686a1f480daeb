import os
import sys
import types
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
FULL_MODELS = {"attacks", "golden", "zoo", "renyi", "test_resume.py"}
"""Folders and files of tests in which the models of the labels are as large as for users."""

# Examples are drawn anew on each run, but a slow machine is no failure.
settings.register_profile("ldpaudit", deadline=None, max_examples=40)
settings.register_profile("validate", deadline=None, max_examples=400)
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


@pytest.fixture(autouse=True)
def _small_models(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the models of the labels grow few trees and choose their blend on two folds.

    They are a third of the time of an audit. Their full size is tried where it matters: in the
    tests of the models, the recorded results and the zoo, and by `make validate`.
    """
    if not FULL_MODELS & {*request.path.parts} and not request.node.get_closest_marker("validate"):
        monkeypatch.setattr("ldpaudit.attacks.models.parts._ITERATIONS", 20)
        monkeypatch.setattr("ldpaudit.attacks.models.posterior._FOLDS", 2)


DRAWN = """<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30">
<text transform="translate(9,20)" fill="black">A chart</text></svg>"""


@pytest.fixture(autouse=True)
def _charts_are_not_drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put one picture for every chart: drawing is a third of the time of a command with a page.

    Every chart is drawn in ``tests/reports`` and by `make validate`; elsewhere the mark ``drawn``
    asks for it.
    """
    if not any(map(request.node.get_closest_marker, ("drawn", "validate"))):
        picture = types.SimpleNamespace(vegalite_to_svg=lambda *_, **__: DRAWN)
        monkeypatch.setitem(sys.modules, "vl_convert", picture)


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


FULL_GUARDS = {"golden", "zoo", "estimators", "assumptions", "mechanism", "columns"}
"""Folders in which the models that look for groups and for derived columns are as large …"""


@pytest.fixture(autouse=True)
def _small_guards(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """… and elsewhere they grow few trees: they are a quarter of the time of an audit."""
    if not FULL_GUARDS & {*request.path.parts} and not request.node.get_closest_marker("validate"):
        monkeypatch.setattr("ldpaudit.audits.mechanism.subgroups._ITERATIONS", 15)
        monkeypatch.setattr("ldpaudit.estimators.assumptions.columns._ITERATIONS", 10)
