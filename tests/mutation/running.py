"""Running a sample of mutants against the collected tests, each in a forked process of its own."""

import ast
import gc
import importlib.util
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import psutil
import pytest

from mutation.coverage_map import FOLDER, Map
from mutation.points import Change, changes, mutated
from mutation.reporting import ALIVE

RESULTS = FOLDER / "results.jsonl"
MEMORY = 4 << 30


class Runner:
    """A pytest plugin: instead of the tests it runs the mutants, and the tests within each."""

    def __init__(self, sample: Sequence[tuple[str, int]], seconds: float, *, again: bool) -> None:
        self.seconds = seconds
        self.map = Map()
        done = {(r["file"], r["number"]): r for r in results()}
        self.todo = [
            m
            for m in sample
            if (done[m]["status"] in ALIVE if m in done else True) and (again == (m in done))
        ]
        self.failed = ""

    def test_files(self) -> list[str]:
        return sorted({name.split("::")[0] for name in self.map.tests})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = _live_functions()
        for file, number in self.todo:
            path = Path(file)
            change = list(changes(ast.parse(path.read_text())))[number]
            names = self._tests_for(path, change, list(items))
            outcome = self._in_child(path, number, change, [items[n] for n in names], functions)
            record = {
                "file": file,
                "number": number,
                "line": change.last,
                "column": change.column,
                "code": path.read_text().splitlines()[change.last - 1].strip(),
                "before": change.before.splitlines()[0],
                "after": change.after.splitlines()[0],
                "tests": len(names),
                **outcome,
            }
            with RESULTS.open("a") as file_:
                print(json.dumps(record, ensure_ascii=False), file=file_)
        return True

    def _tests_for(self, path: Path, change: Change, known: list[str]) -> list[str]:
        """Return the tests that reach the change, in order, as many as fit into the seconds."""
        lines = range(change.first, change.last + 1) if change.inside else None
        reached = self.map.tests_of(path, lines) & set(known)
        folders = set(path.parent.parts) - {"ldpaudit"}
        cost = {
            n: self.map.seconds(n) / 10 ** len(folders & set(Path(n.split("::")[0]).parts))
            for n in reached
        }
        chosen, total = [], 0.0
        for name in sorted(reached, key=lambda n: (cost[n], n)):
            total += self.map.seconds(name) + 0.005
            if total > self.seconds:
                break
            chosen.append(name)
        return chosen

    def _in_child(
        self,
        path: Path,
        number: int,
        change: Change,
        items: list[pytest.Item],
        functions: dict[CodeType, list[FunctionType]],
    ) -> dict[str, Any]:
        if not items:
            return {"status": "no tests"}
        expected = sum(self.map.seconds(i.nodeid) for i in items)
        reader, writer = os.pipe()
        started = time.monotonic()
        child = os.fork()
        if not child:
            self._be_the_mutant(path, number, change, items, functions, writer, 6 + 3 * expected)
        os.close(writer)
        status = _wait(child, 60 + 15 * expected)
        with os.fdopen(reader) as pipe:
            words = pipe.read()
        seconds = round(time.monotonic() - started, 2)
        if status == 0 and not words:
            return {"status": "survived", "seconds": seconds}
        kind = "killed" if words else "timeout" if status < 0 else "killed"
        return {"status": kind, "by": words or f"exit {status}", "seconds": seconds}

    def _be_the_mutant(
        self,
        path: Path,
        number: int,
        change: Change,
        items: list[pytest.Item],
        functions: dict[CodeType, list[FunctionType]],
        writer: int,
        limit: float,
    ) -> None:
        """Become the mutant, run the tests, tell which one failed, and end."""
        status = 1
        try:
            self._quietly(items[0].config, limit)
            tree = mutated(path, number)
            if change.inside and _patch(path, tree, functions):
                self._run(items)
            else:
                self._run_anew(path, tree, [i.nodeid for i in items])
            status = 0
        except BaseException as error:
            self.failed = self.failed or f"{type(error).__name__} outside of a test"
        finally:
            os.write(writer, self.failed.encode())
            os._exit(status)

    def _quietly(self, config: pytest.Config, limit: float) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        address_space = psutil.Process().memory_info().vms + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        sys.stdout = sys.stderr = reporter._tw._file = nowhere

    def _run(self, items: list[pytest.Item]) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def _run_anew(self, path: Path, tree: ast.Module, names: list[str]) -> None:
        """Load the package and the tests again, with the mutant in the module's place."""
        root = str(Path.cwd())
        for name, module in list(sys.modules.items()):
            file = str(getattr(module, "__file__", None) or "")
            if file.startswith(root) and not name.startswith("mutation"):
                del sys.modules[name]
        sys.meta_path.insert(0, _Finder(path, tree))
        watcher = _Watcher()
        options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
        status = pytest.main([*options, *names], plugins=[watcher])
        self.failed = watcher.failed or ("loading" if status not in (0, 5) else "")


class _Watcher:
    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


class _Finder(SourceFileLoader):
    """Finds the mutated module in place of the one on the disk."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.tree = tree
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        super().__init__(name, str(path.absolute()))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, self.path, "exec", dont_inherit=True)


def results() -> list[dict[str, Any]]:
    """Return the last result of each mutant."""
    last = {}
    if RESULTS.exists():
        for line in RESULTS.read_text().splitlines():
            found = json.loads(line)
            last[found["file"], found["number"]] = found
    return list(last.values())


def _wait(child: int, seconds: float) -> int:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _live_functions() -> dict[CodeType, list[FunctionType]]:
    """Return the functions of the package that are loaded, by their code."""
    gc.collect()
    found = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType and "/ldpaudit/" in thing.__code__.co_filename:
            found[thing.__code__].append(thing)
    gc.freeze()  # Forked processes share what they need not look at.
    return found


def _patch(path: Path, tree: ast.Module, functions: dict[CodeType, list[FunctionType]]) -> bool:
    """Give the loaded functions of a module the mutant's code; tell whether any was changed."""
    name = str(path.absolute())
    before = compile(path.read_text(), name, "exec", dont_inherit=True)
    after = compile(tree, name, "exec", dont_inherit=True)
    changed = False
    for old, new in _code_pairs(before, after):
        if old != new and old.co_freevars == new.co_freevars:
            for function in functions.get(old, []):
                if function.__code__.co_filename.endswith(str(path)):
                    function.__code__ = new
                    changed = True
    return changed


def _code_pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    inner = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
    for a, b in zip(*inner, strict=False):
        if a.co_qualname == b.co_qualname:
            yield from _code_pairs(a, b)
