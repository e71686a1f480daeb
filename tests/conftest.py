import same_arithmetic  # noqa: F401, I001 - before NumPy and torch are loaded.

import gc
import os
import random
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# pytest compiles each file of tests anew, unless it may keep what it compiled: half of collecting.
sys.dont_write_bytecode = False
# What the commands print is the same where GitHub or GitLab runs the tests.
os.environ.pop("GITHUB_ACTIONS", None)
os.environ.pop("GITLAB_CI", None)

import boosting_memory  # noqa: E402
import pytest  # noqa: E402
import threadpoolctl  # noqa: E402
from annotated import believed  # noqa: E402
from hypothesis import settings  # noqa: E402
from hypothesis.internal.conjecture import providers  # noqa: E402

from ldpaudit import cli, keywords  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
FULL_GUARDS = {"estimators", "golden", "models"}
"""Folders of tests whose audits run in full effort, as for users."""

# The examples are the same on each run; `make validate` draws many, anew. A slow machine is no
# failure.
settings.register_profile("ldpaudit", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("validate", deadline=None, max_examples=400)
settings.load_profile("ldpaudit")
# Hypothesis reads the constants of all our loaded modules: that takes seconds in every process, and
# examples would depend on which tests ran before.
providers.is_local_module_file = lambda _: False


# What collecting loads stays to the end: searching it for garbage is a quarter of collecting.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# No test loses its power supply: waiting for the disk is most of the time of writing a small file.
os.fsync = lambda _: None

# Which libraries have threads is looked up again once a module was loaded: asking the system each
# time is a twentieth of an audit.
LIBRARIES = dict[int, list[Any]]()
look_up = threadpoolctl.ThreadpoolController._load_libraries


def _looked_up(controller: Any) -> None:
    loaded = len(sys.modules)
    if loaded not in LIBRARIES:
        look_up(controller)
        LIBRARIES[loaded] = controller.lib_controllers
    controller.lib_controllers = LIBRARIES[loaded]


threadpoolctl.ThreadpoolController._load_libraries = _looked_up

SYSTEM_RANDOMNESS = os.urandom


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw what no seed draws from the name of the test: a rare draw fails no test by chance."""
    boosting_memory.remember()
    if item.get_closest_marker("validate"):
        os.urandom = random._urandom = SYSTEM_RANDOMNESS
    else:
        stream = random.Random(item.nodeid).randbytes
        os.urandom = random._urandom = stream


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public datasets beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the public datasets (../shared/data) are not on this machine")
    return folder


@pytest.fixture(autouse=True, scope="module")
def _small_audits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the audits of a module run with ``LDPAUDIT_EFFORT=small``, but for ``FULL_GUARDS``."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.relative_to(ROOT / "tests").parts[0] not in FULL_GUARDS:
            patch.setenv("LDPAUDIT_EFFORT", "small")
        yield


@pytest.fixture(autouse=True)
def _in_full(request: pytest.FixtureRequest, _small_audits: None) -> Iterator[None]:
    """Let tests marked ``validate`` run in full effort, whatever others left behind."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("validate"):
            patch.delenv("LDPAUDIT_EFFORT", raising=False)
        yield


MISTAKES = ("mistake", "bad", "refus", "clear_line", "another_type")
"""Parts of the names of tests that give what no caller may give."""


@pytest.fixture(autouse=True, scope="session")
def _annotations_are_true() -> Iterator[None]:
    """Hold what tests give as keywords to the annotations: they say what callers may give."""
    read = keywords._read

    def held(field: Any, value: Any) -> Any:
        taken = read(field, value)
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].partition("[")[0]
        if not any(part in test for part in MISTAKES):
            assert believed(value, field.type), f"{field.name} is not annotated to take {value!r}."
        return taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keywords, "_read", held)
        yield


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
def unscanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let privatize not learn which columns give labels away: that is half of its time."""
    from ldpaudit.extras.release.privatize.scan import ReleasedColumns

    monkeypatch.setattr(ReleasedColumns, "_look", lambda *_: ([], []))


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
