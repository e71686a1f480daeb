"""How benchmarks take their times."""

import math
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return what a piece of work returns, and the least processor seconds that it took."""
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return result, best


@dataclass(frozen=True)
class Ran:
    """A command that has ended: exit status, processor and wall seconds, GiB, its first line."""

    status: int
    used: float
    wall: float
    peak: float
    sentence: str


def ran(command: list[str]) -> Ran:
    """Run a command and measure it."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    sentence = process.stdout.readline().strip()
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    code, wall = os.waitstatus_to_exitcode(status), time.perf_counter() - start
    return Ran(code, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 2**20, sentence)
