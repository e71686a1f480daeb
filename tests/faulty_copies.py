"""A plug-in of pytest for `make mutate`: leaves out tests that fail before any fault is made.

In a file with faults every function stands many times, and its name calls the one that is tried.
Tests that look at the source, or at signatures, cannot pass there. Which those are depends on the
files that were drawn, so they are found in the first run, named, and left out of all that follow.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

LEFT_OUT = Path(__file__).parent.parent / "left_out.txt"
_FIRST_RUN = "stats"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and os.environ.get("MUTANT_UNDER_TEST") == _FIRST_RUN:
        with LEFT_OUT.open("a") as names:
            names.write(f"{item.nodeid}\n")
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "fails in a copy without any fault")
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let ids be made anew in each run of one process: those kept are escaped a second time."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        if mark._param_ids_from is not None:
            object.__setattr__(mark._param_ids_from, "_param_ids_generated", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = set(LEFT_OUT.read_text().splitlines()) if LEFT_OUT.exists() else set()
    left = [item for item in items if item.nodeid in names]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.nodeid not in names]
