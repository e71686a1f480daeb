"""A plug-in of pytest for `make mutate`: leaves out tests that fail before any fault is made.

In a file with faults every function stands many times, and its name calls the one that is tried.
Tests that look at the source, or at signatures, cannot pass there. Which those are depends on the
files that were drawn, so they are found in the first runs, named, and left out of all that follow.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

PLACE = "FAULTY_COPY"
"""The variable that says where the copy is: one that begins with LDPAUDIT_ would be remarked on."""
_COPY = Path(os.environ.get(PLACE, ""))
LEFT_OUT = _COPY / "left_out.txt"
KILLERS = _COPY / "killers.txt"
"""A line for each fault that was found: its name, a tab, and the test that found it."""
_ORDER = _COPY / "order.txt"
_FIRST_RUN, AGAIN = "stats", "again"
_BEFORE = (_FIRST_RUN, "")
"""How mutmut marks its two runs of the tests before any fault."""
_NO_FAULT = (*_BEFORE, AGAIN, "fail", "mutant_generation")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fault = os.environ.get("MUTANT_UNDER_TEST", "")
    if report.failed and fault not in _NO_FAULT:
        with KILLERS.open("a") as names:
            names.write(f"{fault}\t{item.nodeid}\n")
    if report.failed and fault in _BEFORE:
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
    """Leave out what fails without faults; run the rest in the order of the first run."""
    if os.environ.get("MUTANT_UNDER_TEST") == _FIRST_RUN:
        _ORDER.write_text("\n".join(item.nodeid for item in items))
    if _ORDER.exists():
        places = {name: place for place, name in enumerate(_ORDER.read_text().split("\n"))}
        items.sort(key=lambda item: places.get(item.nodeid, len(places)))
    names = set(LEFT_OUT.read_text().splitlines()) if LEFT_OUT.exists() else set()
    left = [item for item in items if item.nodeid in names]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.nodeid not in names]
