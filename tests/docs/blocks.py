"""The fenced blocks of a page, run as a reader would run them, in a folder with the examples.

A ``console`` block holds commands after ``$`` (a line that ends in ``\\`` goes on) and what they
print; ``# exit status N`` after a command says how it ends, otherwise with 0. A ``python`` block is
executed; the blocks of a page share their names. What a page shows of the output is compared word
by word, in order: numbers may differ, ``…`` stands for anything, lines may be broken elsewhere.

Comments before a block speak to the tests alone: ``<!-- not run: REASON -->``;
``<!-- file: NAME -->``, where the reader saves the block; and ``<!-- first: COMMAND -->``, a
command that is run but not shown (several: one comment each); and ``<!-- with: NAME=VALUE -->``,
a variable of the environment.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from releases import declare_as_released

from ldpaudit.options import AuditOptions
from ldpaudit.work.tasks import Pool

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
ROWS = 1000
"""Of the table of `make.py`; the agency's has its own: with fewer its audits are too weak."""
QUICK = {
    "LDPAUDIT_SKIP": "renyi observational assumptions",
    "LDPAUDIT_SEEDS_TRIED": "16",
    "LDPAUDIT_QUERIES": "50",
    "LDPAUDIT_THREADS": "1",
    "LDPAUDIT_PROCESSES": "1",
    "LDPAUDIT_SAMPLES": "20000",
    "LDPAUDIT_EXPERIMENTAL": "1",
    "LDPAUDIT_OVERWRITE": "1",
    "LDPAUDIT_SEED": "1",
}
"""What makes the commands quick and their draws repeatable, without a word on the command line."""
QUICK_IN_PYTHON = {
    "skip": ("seeds", "renyi", "observational", "assumptions"),
    "queries": 50,
    "threads": 1,
}
"""The same for ``ldpaudit.audit``: what is used where a call says nothing else."""

_FENCE = re.compile(
    r"((?:^<!-- [^\n]* -->\n+)*)^( *)```(\w*)[^\n]*\n(.*?)^\2```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, first line in the page, and the comments before it."""

    language: str
    text: str
    line: int
    first: tuple[str, ...] = ()
    not_run: str = ""
    file: str = ""
    given: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Command:
    """A command of a console block: how it ends, and what the page shows of its output."""

    words: tuple[str, ...]
    status: int
    shown: str


def blocks(text):
    """Return the fenced blocks of a page in order."""
    found = []
    for match in _FENCE.finditer(text):
        comments, indent, language, body = match.groups()
        (reason, *_) = [*re.findall(r"<!-- not run: (.*?) -->", comments), ""]
        (file, *_) = [*re.findall(r"<!-- file: (.*?) -->", comments), ""]
        first = tuple(re.findall(r"<!-- first: (.*?) -->", comments))
        given = tuple(re.findall(r"<!-- with: (\w+)=(.*?) -->", comments))
        body = re.sub(f"^{indent}", "", body, flags=re.MULTILINE)
        line = text.count("\n", 0, match.start(3)) + 1
        found.append(Block(language, body, line, first, reason, file, given))
    return found


def commands(text):
    """Return the commands of a console block."""
    joined = re.sub(r"\\\n\s*", " ", text)
    found = []
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        status = re.search(r"# exit status (\d)", line)
        words = tuple(shlex.split(line, comments=True))
        found.append(Command(words, int(status[1]) if status else 0, shown))
    return found


def unlike(shown, printed):
    """Return the first shown word that the output lacks (in order); empty where it has all."""
    position = 0
    for word in re.findall(r"[^\W\d_]{3,}", shown):
        position = printed.find(word, position)
        if position < 0:
            return word
        position += len(word)
    return ""


def prepare(folder):
    """Fill a folder with the examples and the tables that they make, small ones."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    with contextlib.chdir(folder):
        _run(("python", "make.py"))


def run_page(text, folder, names=None):
    """Run all console and Python blocks of a page in a folder, one after the other.

    Parameters
    ----------
    text : str
        The page.
    folder : Path
        Filled by :func:`prepare`, or by the page's own steps.
    names : dict, optional
        What its Python blocks find defined.

    Raises
    ------
    AssertionError
        If a command ends with another status, or prints other words than shown.
    """
    names = {} if names is None else names
    with contextlib.chdir(folder), _environment():
        for block in blocks(text):
            if block.not_run:
                continue
            os.environ.update(QUICK | dict(block.given))
            for line in block.first:
                _check(Command(tuple(shlex.split(line)), 0, ""))
            if block.file:
                Path(block.file).write_text(block.text)
            if block.language == "console":
                for command in commands(block.text):
                    _check(command)
            elif block.language == "python":
                exec(compile(block.text, f"block at line {block.line}", "exec"), names)
                declare_as_released(Path())


def _check(command):
    line = shlex.join(command.words)
    status, printed = _run(command.words)
    declare_as_released(Path())
    assert status == command.status, f"{line}: exit status {status}\n{printed}"
    missing = unlike(command.shown, printed)
    assert not missing, f"{line}: does not print {missing!r} there\n{printed}"


def _run(words):
    """Run a command in this process where that is possible; return its status and output."""
    words = tuple(word.removeprefix(".venv/bin/") for word in words)
    if ">" in words:
        words, file = words[:-2], words[-1]
        status, printed = _run(words)
        Path(file).write_text(printed)
        return status, ""
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, ""
    if words[0] == "ldpaudit":
        return _in_process(words, _ldpaudit)
    if words == ("python", "make.py"):
        words = (*words, str(ROWS))
    if words[0] == "python" and words[1].endswith(".py"):
        return _in_process(words[1:], lambda: runpy.run_path(words[1], run_name="__main__"))
    if words[0] in ("cat", "ls", "echo"):
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr
    raise AssertionError(f"Pages use ldpaudit, python FILE, cd, cat, ls and echo, not {words[0]}.")


def _in_this_process(*_, **__):
    return contextlib.nullcontext(Pool(1))


def _ldpaudit():
    from ldpaudit import cli

    cli.main()


def _in_process(words, work):
    before, sys.argv = sys.argv, list(words)
    printed, status = io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            work()
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else 0
    finally:
        sys.argv = before
    return status, printed.getvalue()


@contextlib.contextmanager
def _environment():
    before = dict(os.environ)
    os.environ.update(QUICK)
    try:
        with (
            patch("ldpaudit.reports.charts.svg.has_addresses_for", return_value=False),
            patch.dict(AuditOptions.__init__.__kwdefaults__, QUICK_IN_PYTHON),
            patch("os.urandom", np.random.default_rng(1).bytes),  # Of noise that no seed draws.
            patch("ldpaudit.extras.probe.black_box.work.processes", _in_this_process),
        ):
            yield  # Charts, a third of the time, are not drawn.
    finally:
        os.environ.clear()
        os.environ.update(before)
