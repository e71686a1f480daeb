"""The command line in a child of its own, started from a process that has everything imported.

What becomes of the child (its status, its text, its time and memory) is all that is looked at, so a
crash, a hang or a library that ends the process is seen as well.
"""

import contextlib
import io
import os
import re
import resource
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

IMPORTED = (
    "pandas",
    "scipy.stats",
    "scipy.sparse.linalg",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.datasets",
    "pyarrow.csv",
    "pyarrow.json",
    "pyarrow.dataset",
    "openpyxl",
    "ldpaudit.cli",
    "ldpaudit.api",
    "ldpaudit.commands.run",
    "ldpaudit.extras.release.privatize",
    "ldpaudit.extras.compare",
    "ldpaudit.extras.learn",
    "ldpaudit.extras.choose.sweep",
    "ldpaudit.commands.declare",
    "ldpaudit.extras.choose.advise",
)


@dataclass(frozen=True)
class Outcome:
    """What became of a command.

    Attributes
    ----------
    status : int
        Its exit status; the negative number of the signal that ended it.
    text : str
        What it printed, on both streams.
    seconds : float
        Of CPU time.
    grown : int
        Bytes of memory beyond those of the process that started it.
    """

    status: int
    text: str
    seconds: float
    grown: int

    @property
    def lines(self):
        """The lines that it printed, without those that say how far it is, or how it reads."""
        every = self.text.strip().splitlines()
        notes = [one.endswith(" …") or one.startswith("ldpaudit: Read the ") for one in every]
        return [line for line, note in zip(every, notes, strict=True) if not note]

    @property
    def faulty(self):
        """Say in a word what is wrong with it as an answer to bad input; empty where nothing is."""
        if self.status not in (0, 1, 2, 3):
            return f"status {self.status}"
        # A sentence of a report may say "Warning:", Python says which one.
        for sign in ("Internal fault", "Traceback", r"\wWarning:", "site-packages"):
            if re.search(sign, self.text):
                return sign
        if self.status == 2 and len(self.lines) != 1:
            return f"{len(self.lines)} lines"
        return ""


def attempt(*words, folder, seconds=60, memory=6 << 30, read=None):
    """Carry out a command in a child whose working directory is ``folder``.

    ``read``: the bytes that reading may take, where the command has no option for it.
    """

    def call():
        from ldpaudit.datasets.formats.tables import held_to

        with held_to(read):
            status, text = here([str(word) for word in words], folder)
        os.write(1, text.encode(errors="replace"))
        return status

    return in_child(call, seconds, memory)


def in_child(call, seconds, memory=6 << 30):
    """Call a function in a child, whose status is what it returns."""
    for name in IMPORTED:
        __import__(name)
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if not child:
            _carry_out(call, printed.fileno(), seconds, memory)
        _, ended, used = os.wait4(child, 0)
        printed.seek(0)
        text = printed.read().decode(errors="replace")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Outcome(
        os.waitstatus_to_exitcode(ended),
        text,
        used.ru_utime + used.ru_stime,
        max(0, used.ru_maxrss - before) << 10,
    )


def here(words, folder):
    """Carry out a command in this process; return its status and what it printed."""
    from ldpaudit import cli

    status, before = 99, Path.cwd()
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace")
    os.chdir(folder)
    sys.argv = ["ldpaudit", *words]
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            cli.main()
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    finally:
        os.chdir(before)
    printed.flush()
    raw = printed.buffer
    assert isinstance(raw, io.BytesIO)
    return status, raw.getvalue().decode(errors="replace")


def _carry_out(call, output, seconds, memory):
    status = 99
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        status = call() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
