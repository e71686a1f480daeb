"""Which tests run which line, and how long each takes: measured once, by running them.

In: the tests that pytest has collected. Out: ``build/mutation/lines.0``, ``.1``, … (coverage.py's
data of each measurement, one context a test or shared fixture) and ``tests.json`` (seconds and
shared fixtures of each test). Remove the folder when the sources have changed.
"""

import json
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path("build/mutation").resolve()
TESTS = FOLDER / "tests.json"


def fixture_name(definition: Any) -> str:
    return f"fixture {definition.baseid} {definition.argname}"


class Mapper:
    """A pytest plugin that notes what each test runs; start it before the package is loaded."""

    def __init__(self, sources: list[Path]) -> None:
        import coverage

        FOLDER.mkdir(parents=True, exist_ok=True)
        lines = FOLDER / f"lines.{len(list(FOLDER.glob('lines.*')))}"
        included = [str(path.resolve()) for path in sources]
        self.coverage = coverage.Coverage(data_file=str(lines), include=included)
        self.seen: dict[str, Any] = json.loads(TESTS.read_text()) if TESTS.exists() else {}
        self.context = ""
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        shared = [
            fixture_name(found[-1])
            for found in item._fixtureinfo.name2fixturedefs.values()
            if found[-1].scope != "function"
        ]
        self._enter(item.nodeid)
        started = time.process_time()
        try:
            return (yield)
        finally:
            seconds = round(time.process_time() - started, 4)
            self.seen[item.nodeid] = {"seconds": seconds, "shared": shared}
            self._enter("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        outer = self.context
        if fixturedef.scope != "function":
            self._enter(fixture_name(fixturedef))
        try:
            return (yield)
        finally:
            self._enter(outer)

    def _enter(self, context: str) -> None:
        self.context = context
        self.coverage.switch_context(context)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        TESTS.write_text(json.dumps(self.seen, indent=0))


class Map:
    """The tests of a line, quickest first."""

    def __init__(self) -> None:
        import coverage

        self.tests: dict[str, Any] = json.loads(TESTS.read_text())
        self.data = [coverage.CoverageData(str(file)) for file in sorted(FOLDER.glob("lines.*"))]
        for data in self.data:
            data.read()
        self.users: dict[str, set[str]] = defaultdict(set)
        for name, test in self.tests.items():
            for fixture in test["shared"]:
                self.users[fixture].add(name)

    def tests_of(self, path: Path, lines: range | None) -> set[str]:
        """Return the tests that run any of ``lines``, or any line of the module.

        Those of the module also where a line runs only while the module is loaded.
        """
        contexts = self._contexts(path, lines)
        if contexts == {""}:
            contexts = self._contexts(path, None)
        return {c for c in contexts if c in self.tests}.union(
            *(self.users[c] for c in contexts if c in self.users)
        )

    def _contexts(self, path: Path, lines: range | None) -> set[str]:
        found: set[str] = set()
        for data in self.data:
            ran = data.contexts_by_lineno(str(path.resolve()))
            found.update(*(ran.get(i, ()) for i in (ran if lines is None else lines)))
        return found

    def seconds(self, test: str) -> float:
        found = self.tests.get(test)
        return found["seconds"] if found else 0.1
