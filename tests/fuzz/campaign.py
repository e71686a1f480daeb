"""Thousands of bad command lines, each in a process of its own that is forked from this one.

``python -m fuzz.campaign [--seed N] [--cases N] [KIND …]`` prints the table of
benchmarks/results/robustness.md. A
fault is an internal fault, a traceback, a warning, more than one line on standard error, a status
outside 0–3, a refusal that takes over 2 seconds of processor time, or more than 2 GiB.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fuzz.command_lines import KINDS, Line
from killing.running import Place, nothing, started

SECONDS: Final = 2.0
PATIENCE: Final = 20
MEMORY_KIB: Final = 2 << 20
_SHOWN: Final = 3


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    status: int
    errors: str
    seconds: float
    kib: int

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong about it."""
        # Lines of progress end so; how a file is read is a remark.
        lines = [
            line
            for line in self.errors.splitlines()
            if not line.endswith("…") and not line.startswith("ldpaudit: Read the ")
        ]
        found = {
            "internal fault": "Internal fault" in self.errors,
            "traceback": "Traceback" in self.errors,
            "warning": re.search(r"[a-z]Warning\b", self.errors) is not None,
            "lines": self.status == 2 and len(lines) != 1,
            "status": self.status not in range(4),
            "slow": self.status == 2 and self.seconds > SECONDS,
            "memory": self.kib > MEMORY_KIB,
        }
        return tuple(what for what, so in found.items() if so)


def run_line(line: Line, folder: Path) -> Ended:
    """Run a command line in a child with the files in a folder."""
    for name, content in line.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    place = Place(folder / "place")
    _, status, usage = _waited(started([*line.words], folder, place, nothing))
    code = os.waitstatus_to_exitcode(status)
    errors = (place.folder / "said").read_text(encoding="utf-8", errors="replace")
    return Ended(code, errors, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def _waited(child: int) -> tuple[int, int, Any]:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = os.wait4(child, os.WNOHANG)
        if found[0]:
            return found
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.wait4(child, 0)


def campaign(
    kinds: Mapping[str, Callable[[random.Random], Line]], cases: int, seed: int
) -> dict[str, Counter[str]]:
    """Run so many cases of each kind; print the faults, and return the counts."""
    table: dict[str, Counter[str]] = {}
    for kind, made in kinds.items():
        counts, seen = Counter[str](), Counter[str]()
        for case in range(cases):
            line = made(random.Random(f"{seed} {kind} {case}"))
            if any("\0" in word for word in line.words):
                continue  # No shell can hand it over.
            with tempfile.TemporaryDirectory() as folder:
                ended = run_line(line, Path(folder))
            counts[f"exit {ended.status}"] += 1
            counts["cases"] += 1
            counts["faults"] += bool(ended.faults)
            for fault in ended.faults:
                seen[fault] += 1
                if seen[fault] <= _SHOWN:
                    print(kind, case, fault, f"{ended.seconds:.1f} s", _words(line), flush=True)
                    print("   ", ended.errors[-300:].replace("\n", "\n    "), flush=True)
        table[kind] = counts
    return table


def _words(line: Line) -> str:
    return " ".join(repr(word[:60]) for word in line.words)


def _imported() -> None:
    """Import what the commands import, so that a child starts at once."""
    import faiss
    import pyarrow.csv
    import pyarrow.parquet
    import scipy.optimize
    import scipy.stats
    import sklearn.linear_model

    import ldpaudit
    from ldpaudit.cli import app
    from ldpaudit.commands.run import work as run_work
    from ldpaudit.extras.choose.mechanism import analysis as work
    from ldpaudit.mechanisms.registry import families

    list(families())
    del faiss, pyarrow, scipy, sklearn, ldpaudit, app, work, run_work


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100)
    stated = parser.parse_args()
    with warnings.catch_warnings():
        _imported()
    chosen = {
        kind: made for kind, made in KINDS.items() if not stated.kinds or kind in stated.kinds
    }
    table = campaign(chosen, stated.cases, stated.seed)
    print("| input | cases | exit 0 / 1 / 2 / 3 | faults |\n|---|---:|---|---:|")
    for kind, counts in table.items():
        ends = " / ".join(f"{counts[f'exit {status}']:,}" for status in range(4))
        print(f"| {kind} | {counts['cases']:,} | {ends} | {counts['faults']} |")


if __name__ == "__main__":
    main()
