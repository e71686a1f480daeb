"""``make mutate``: a seeded sample of small faults over all folders, and what no test notices.

mutmut makes the faults and runs the tests that reach each. It works on a copy of the project,
``build/mutation``, in which the symbolic links are folders. Faults in texts are left out.
"""

import argparse
import ast
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from scipy.stats import binomtest

COPY = Path("build/mutation")
LEFT_OUT = ("docs", "ci", "fuzz", "security", "stranger", "golden", "benchmarks", "zoo")
"""Folders of tests that run commands in processes of their own, or look at the project's files."""
READ_SOURCE = (
    "mechanisms/test_answers.py::test_no_mechanism_is_named_outside_of_its_folder",
    "reports/test_sections.py::test_no_id_is_taken_apart",
    "result/test_numbers.py",
    "test_docs.py",
)
"""Tests that read the source, in which every function of a file with faults stands many times."""
SHARE = 5
"""Faults of a file, about: a file of many statements is drawn more often."""
SETTINGS = """

[tool.mutmut]
source_paths = ["ldpaudit"]
only_mutate = {files}
also_copy = ["README.md", "CONTRIBUTING.md", "docs", "benchmarks", "examples"]
pytest_add_cli_args = ["-q", "-m", "not validate", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
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
    ignored = [f"--ignore=tests/{folder}" for folder in LEFT_OUT]
    ignored += [f"--deselect=tests/{name}" for name in READ_SOURCE]
    settings = SETTINGS.format(files=files, tests=asked.tests or ["tests", *ignored])
    with (COPY / "pyproject.toml").open("a") as project:
        project.write(settings)
    mutmut("run", "none")  # Makes the faults, and learns which test reaches what.
    found = [name for name in listed() if changes_more_than_a_text(name)]
    chosen = rng.sample(found, min(asked.sample, len(found)))
    mutmut("run", *chosen)
    return report(chosen)


def drawn_files(rng: random.Random, number: int) -> list[str]:
    """Return files, drawn with a chance in proportion to their statements."""
    sizes = {}
    for path in sorted((COPY / "ldpaudit").rglob("*.py")):
        tree = ast.parse(path.read_text())
        sizes[str(path.relative_to(COPY))] = sum(isinstance(n, ast.stmt) for n in ast.walk(tree))
    return sorted({*rng.choices(list(sizes), list(sizes.values()), k=number)})


def mutmut(*words: str) -> str:
    command = [sys.executable, "-m", "mutmut", *words]
    with (COPY / "mutmut.log").open("a") as log:
        ran = subprocess.run(
            command, cwd=COPY, stdout=subprocess.PIPE, stderr=log, text=True, check=False
        )
    if "failed to collect stats" in ran.stdout:
        sys.exit(f"The tests fail before any fault is made:\n{ran.stdout[-2000:]}")
    return ran.stdout


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


def report(chosen: list[str]) -> int:
    """Print the counts and the survivors; return the exit status."""
    lines = [line.split(": ") for line in mutmut("results", "--all", "true").splitlines()]
    became = {parts[0].strip(): parts[1] for parts in lines if len(parts) == 2}
    counts = Counter(became.get(name, "not run") for name in chosen)
    alive = [name for name in chosen if became.get(name) in ("survived", "no tests")]
    tried = counts.total() - counts["not run"]
    killed = tried - len(alive)
    ends = binomtest(killed, tried).proportion_ci(0.95, "exact")
    words = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    for name in alive:
        sys.stdout.write(f"{became[name]}: {name}\n")
    sys.stdout.write(f"{words}: {killed / tried:.1%} killed ({ends.low:.1%} to {ends.high:.1%})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
