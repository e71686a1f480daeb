"""Every benchmark's case is run small: it must yield its tables, whatever their numbers are."""

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import IO

import numpy as np
import pytest

import ldpaudit
from benchmarks import __main__ as benchmarks
from benchmarks import runner
from benchmarks.runner import CASES, LDPAUDIT, keep, lines
from ldpaudit.cli import main
from ldpaudit.extras.selftest.planting import people

_MOST_SECONDS = 120


def _forked(words: list[str], out: IO[str], error: IO[str]) -> int:
    """Start a command in a fork, which has imported everything already."""
    if tuple(words[:3]) != LDPAUDIT:
        return runner._started(words, out, error)
    process = os.fork()
    if process:
        return process
    status = 70
    signal.alarm(_MOST_SECONDS)  # Ends a fork that hangs: the threads of libraries are not in it.
    try:
        for number, file in ((1, out), (2, error)):
            os.dup2(file.fileno(), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        sys.argv = ["ldpaudit", *words[3:]]
        main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(status)


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported() -> None:
    persons = people(200, 2, np.random.default_rng(1))
    claim = {"name": "randomized-response", "classes": ["no", "yes"], "epsilon": 1.0}
    found = ldpaudit.audit(
        persons.frame.assign(label=persons.labels),
        persons.labels,
        claim,
        only=("mechanism",),
        rng=1,
    )
    assert "<html" in found.to_html()


LONG = {
    *("black_box", "honest_files", "training", "unlisted", "exact_advantage", "cluster"),
    "passes",
    *(
        "papers_tdr_figure_3",
        "advise",
        "growth",
        "decisions",
        "real_releases",
        "sweep",
        "synthesis",
    ),
}
"""Cases that take more than a second: run by `make validate`."""


@pytest.fixture(autouse=True)
def _commands_start_fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # Long ones run after many other tests, of which a fork may be broken.
    if request.node.get_closest_marker("validate") is None:
        monkeypatch.setattr(runner, "START", _forked)


def marks(name: str) -> list[pytest.MarkDecorator]:
    case = CASES[name]
    data = "data" in case.options.keys() - case.small
    long = [pytest.mark.validate] if name in LONG else []
    return long + ([pytest.mark.real_data] if data else [])


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in CASES])
def test_a_case_runs_small(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    case, more = CASES[name], {}
    if "data" in case.options.keys() - case.small:
        more["data"] = request.getfixturevalue("shared_data")
    if "folder" in case.options:
        more["folder"] = tmp_path
    assert set(case.small) <= set(case.options)
    text = list(lines(case.run(**{**case.small, **more})))
    rows = [line for line in text if line.startswith("| ")]
    assert len(rows) > 1
    assert (case.run.__doc__ or "").partition("\n")[0].endswith(("?", "."))


def test_options_are_read_and_results_are_kept_between_their_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kept.md"
    file.write_text("# Before\n")
    monkeypatch.setitem(CASES, "mechanisms", CASES["mechanisms"]._replace(kept=file))
    benchmarks.main(["mechanisms", "--rows", "2000", "--write"])
    first = file.read_text()
    assert first.startswith("# Before\n\n<!-- mechanisms -->\n| mechanism, labels |")
    assert "`python -m benchmarks mechanisms --rows 2000 --write`" in first
    keep("mechanisms", "new\n")
    assert file.read_text() == "# Before\n\n<!-- mechanisms -->\nnew\n<!-- end of mechanisms -->\n"
    capsys.readouterr()
    benchmarks.main([])
    assert all(name in capsys.readouterr().out for name in ["mechanisms"])


def test_every_case_is_in_the_list_of_questions() -> None:
    page = (Path(__file__).parents[2] / "benchmarks" / "README.md").read_text()
    assert [name for name in CASES if f"`{name}`" not in page] == []
