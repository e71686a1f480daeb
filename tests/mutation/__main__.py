"""Mutation testing: a seeded sample of small faults, and whether the tests notice each.

``make mutate SAMPLE=1000 SEED=1``. The tests are collected once; each mutant is put into a forked
copy of that process, which runs the tests that reach the changed line, quickest first, until one
fails. Results go to ``build/mutation/results.jsonl``, a line a mutant; a second run goes on there.
``--again`` repeats the survivors (with ``--tests`` by these tests only).
"""

import argparse
import ast
import os
import random
import sys
from pathlib import Path

import pytest

from mutation.coverage_map import TESTS, Mapper
from mutation.points import changes
from mutation.reporting import survivors, table

SOURCES = (
    "ldpaudit/mechanisms",
    "ldpaudit/estimators",
    "ldpaudit/attacks/scoring",
    "ldpaudit/judging/checks",
    "ldpaudit/judging/verdict.py",
)
FIRST_TESTS = (
    "tests/mechanisms",
    "tests/estimators",
    "tests/attacks",
    "tests/judging",
    "tests/test_verdict.py",
    "tests/test_checks.py",
)
OPTIONS = ["-q", "-p", "no:cacheprovider", "-m", "not validate", "--hypothesis-seed=0"]


def source_files() -> list[Path]:
    return sorted(f for s in map(Path, SOURCES) for f in ([s] if s.suffix else s.rglob("*.py")))


def sample(size: int, seed: int) -> list[tuple[str, int]]:
    """Return ``size`` mutants, uniform over all of them: (file, number of the change)."""
    everything = [
        (str(path), i)
        for path in source_files()
        for i, _ in enumerate(changes(ast.parse(path.read_text())))
    ]
    return random.Random(seed).sample(everything, size)


def main() -> int:
    ask = argparse.ArgumentParser(prog="mutation")
    ask.add_argument("--sample", type=int, default=1000)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--seconds", type=float, default=10.0, help="of tests for each mutant")
    ask.add_argument("--map", nargs="*", help="measure these tests (anew) and stop")
    ask.add_argument("--again", action="store_true", help="repeat the survivors")
    ask.add_argument("--tests", nargs="*", default=[], help="these tests only")
    asked = ask.parse_args()
    if asked.map is not None or not TESTS.exists():
        status = _measure(asked.map or list(FIRST_TESTS))
        if asked.map is not None:
            return status
    from mutation.running import Runner, results

    chosen = sample(asked.sample, asked.seed)
    runner = Runner(chosen, asked.seconds, again=asked.again)
    status = pytest.main([*OPTIONS, *(asked.tests or runner.test_files())], plugins=[runner])
    found = [r for r in results() if (r["file"], r["number"]) in set(chosen)]
    sys.stdout.write("\n".join(["", *survivors(found), "", table(found), ""]))
    return int(status)


def _measure(tests: list[str]) -> int:
    """Run ``tests`` under measurement in a child, so that none has run in this process."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(int(pytest.main([*OPTIONS, *tests], plugins=[Mapper(source_files())])))


if __name__ == "__main__":
    sys.exit(main())
