"""``make mutate``: a seeded sample of small faults, and what no test notices.

Half of the sample is drawn from the core and half from the extras, and each is counted apart.
mutmut makes the faults and runs the tests that reach each. It works on a copy of the project,
``build/mutation``, in which the symbolic links are folders. Faults in texts are left out.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import faulty_copies
from scipy.stats import binomtest

COPY = Path("build/mutation")
STATISTICS = COPY / "mutants" / "mutmut-stats.json"
LEFT_OUT = ("docs", "ci", "fuzz", "security", "stranger", "golden", "benchmarks", "zoo")
"""Folders of tests that run commands in processes of their own, or look at the project's files."""
MOST_LEFT_OUT = 25
"""Tests that may fail before any fault is made: those that look at the source (`faulty_copies`)."""
PARTS = ("core", "extras")
SURVIVED = ("survived", "no tests")
UNTRIED = ("not run", "not checked")
SHARE = 5
"""Faults of a file, about: a file of many statements is drawn more often."""
SETTINGS = """

[tool.mutmut]
source_paths = ["ldpaudit"]
process_isolation = "forkserver"
only_mutate = {files}
also_copy = ["README.md", "CONTRIBUTING.md", "docs", "benchmarks", "examples"]
pytest_add_cli_args = [
    "-q", "-m", "not validate", "-p", "no:cacheprovider", "-p", "faulty_copies",
    "--hypothesis-seed=0",
]
pytest_add_cli_args_test_selection = {tests}
"""


def main() -> int:
    ask = argparse.ArgumentParser(prog="make mutate")
    ask.add_argument("--sample", type=int, default=300)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--files", nargs="*", help="in these files only")
    ask.add_argument("--tests", nargs="*", help="by these tests only")
    asked = ask.parse_args()
    shutil.rmtree(COPY, ignore_errors=True)
    left = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__")
    shutil.copytree(".", COPY, ignore=left)
    for folder in ("attacks", "datasets", "reports"):
        shutil.rmtree(COPY / folder)
    rng = random.Random(asked.seed)
    files = asked.files or drawn_files(rng, asked.sample // SHARE)
    for folder in LEFT_OUT:
        if not (COPY / "tests" / folder).exists():
            sys.exit(f"There is no tests/{folder}, which is to be left out.")
    ignored = [f"--ignore=tests/{folder}" for folder in LEFT_OUT]
    settings = SETTINGS.format(files=files, tests=asked.tests or ["tests", *ignored])
    with (COPY / "pyproject.toml").open("a") as project:
        project.write(settings)
    learn_what_tests_reach()
    found = [name for name in listed() if changes_more_than_a_text(name)]
    chosen = {part: drawn_faults(rng, found, part, asked.sample) for part in PARTS}
    mutmut("run", *chosen["core"], *chosen["extras"])
    name_left_out()
    return report(chosen, found_by_chance())


def name_left_out() -> None:
    """Print the tests that failed before any fault was made; end where they are many."""
    file = COPY / faulty_copies.LEFT_OUT.name
    names = file.read_text().splitlines() if file.exists() else []
    for name in names:
        sys.stdout.write(f"left out: {name}\n")
    sys.stdout.flush()
    if len(names) > MOST_LEFT_OUT:
        sys.exit(f"{len(names)} tests fail before any fault is made.")


def part_of(name: str) -> str:
    """Return the part of the house that a file, or a fault by its name, belongs to."""
    return "extras" if re.match(r"ldpaudit[./]extras[./]", name) else "core"


def drawn_files(rng: random.Random, number: int) -> list[str]:
    """Return files of both parts, drawn with a chance in proportion to their statements."""
    sizes: dict[str, dict[str, int]] = {part: {} for part in PARTS}
    for path in sorted((COPY / "ldpaudit").rglob("*.py")):
        file, tree = str(path.relative_to(COPY)), ast.parse(path.read_text())
        statements = sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
        sizes[part_of(file)][file] = statements
    drawn = set[str]()
    for each in sizes.values():
        drawn.update(rng.choices(list(each), list(each.values()), k=max(number // len(PARTS), 1)))
    return sorted(drawn)


def drawn_faults(rng: random.Random, found: list[str], part: str, sample: int) -> list[str]:
    """Return the faults of a part that are tried: its share of the sample, where it has so many."""
    own = [name for name in found if part_of(name) == part]
    return rng.sample(own, min(sample // len(PARTS), len(own)))


def learn_what_tests_reach() -> None:
    """Make every fault and run the tests once without any; no fault is tried yet."""
    # mutmut does both first, and then ends with an error: no fault has such a name.
    run_mutmut("run", "none")
    if not STATISTICS.exists():
        sys.exit(f"The tests fail before any fault is tried: see {COPY / 'mutmut.log'}.")


def mutmut(*words: str) -> str:
    ran = run_mutmut(*words)
    if ran.returncode:
        sys.exit(f"The tests fail before any fault is tried:\n{ran.stdout[-2000:]}")
    return ran.stdout


def run_mutmut(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", *words]
    with (COPY / "mutmut.log").open("a") as log:
        return subprocess.run(
            command,
            cwd=COPY,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
        )


def listed() -> list[str]:
    """Return the name of every fault that was made."""
    files = sorted((COPY / "mutants").rglob("*.py.meta"))
    return [name for file in files for name in json.loads(file.read_text())["exit_code_by_key"]]


@cache
def functions(file: Path) -> dict[str, str]:
    """Return the functions of a file with faults, by name, as trees without texts."""
    found = {}
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            name, node.name = node.name, ""
            found[name] = ast.dump(node)
    return found


def changes_more_than_a_text(name: str) -> bool:
    module, _, function = name.rpartition(".")
    folder = COPY / "mutants" / Path(*module.split("."))
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    known = functions(file)
    original = re.sub(r"__mutmut_\d+$", "__mutmut_orig", function)
    return known.get(function) != known.get(original)


def found_by_chance() -> set[str]:
    """Return the faults that only a test found which fails without any fault when run again."""
    if not (COPY / faulty_copies.KILLERS.name).exists():
        return set()
    lines = (COPY / faulty_copies.KILLERS.name).read_text().splitlines()
    killers = dict(line.split("\t", 1) for line in lines)
    again = "import pytest, sys; pytest.main(sys.argv[1:]); sys.exit(pytest.main(sys.argv[1:]))"
    words = ["-q", "-m", "not validate", "-p", "no:cacheprovider", "-p", "faulty_copies", "-rf"]
    ran = subprocess.run(
        [sys.executable, "-c", again, *words, *sorted({*killers.values()})],
        cwd=COPY / "mutants",
        env=environment() | {"MUTANT_UNDER_TEST": faulty_copies.AGAIN},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    failing = {line[7:].split(" - ")[0] for line in ran.stdout.splitlines() if line[:6] == "FAILED"}
    for name in sorted(failing):
        sys.stdout.write(f"fails when it is run again: {name}\n")
    return {fault for fault, name in killers.items() if name in failing}


def environment() -> dict[str, str]:
    copy = COPY.resolve()
    return {**os.environ, "PYTHONPATH": str(copy / "tests"), faulty_copies.PLACE: str(copy)}


def report(chosen: dict[str, list[str]], chance: set[str]) -> int:
    """Print the survivors and the counts of each part; return the exit status.

    Faults found by ``chance`` count as not tried.
    """
    lines = [line.split(": ") for line in mutmut("results", "--all", "true").splitlines()]
    became = {parts[0].strip(): parts[1] for parts in lines if len(parts) == 2}
    became |= dict.fromkeys(chance, "not run")
    for name in (name for names in chosen.values() for name in names):
        if became.get(name) in SURVIVED:
            sys.stdout.write(f"{became[name]}: {name}\n")
    for part, names in chosen.items():
        sys.stdout.write(f"{part}: {counted(Counter(became.get(n, 'not run') for n in names))}\n")
    return 0


def counted(counts: Counter[str]) -> str:
    """Return how many faults became what, and the share of those killed with its interval."""
    tried = counts.total() - sum(counts[name] for name in UNTRIED)
    if not tried:
        return "no fault was tried"
    killed = tried - sum(counts[name] for name in SURVIVED)
    ends = binomtest(killed, tried).proportion_ci(0.95, "exact")
    words = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    return f"{words}: {killed / tried:.1%} killed ({ends.low:.1%} to {ends.high:.1%})"


if __name__ == "__main__":
    sys.exit(main())
