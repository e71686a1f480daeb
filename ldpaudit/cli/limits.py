"""A limit on the addresses of the process (``ulimit -v``): libraries may abort when they meet it.

Such an end cannot be caught from inside. Under a limit the work is therefore done by a child, and
whatever becomes of it, the command ends with a status of the contract and one line.
"""

import os
import signal
import subprocess
import sys
from types import FrameType
from typing import Final

from ldpaudit.work.interruption import undisturbed
from ldpaudit.work.memory import address_limit, shown

# Bytes of addresses that Python and the libraries need; with fewer they may abort in any way.
LEAST: Final = 1_200 << 20
CHILD: Final = "LDPAUDITCHILD"
# Without these, libraries reserve gigabytes of addresses that they never use.
_FRUGAL: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
_STATUSES: Final = (0, 1, 2, 3)


def status_under_limit() -> tuple[int, str] | None:
    """Carry out the command in a child where addresses are limited."""
    # Returns the exit status, and a line to print or nothing; None where there is no limit, or this
    # process is the child.
    limit = address_limit()
    if limit is None or os.environ.get(CHILD):
        return None
    if limit < LEAST:
        return 2, (
            f"The limit on the process's memory (ulimit -v) is {shown(limit)}; at least "
            f"{shown(LEAST)} are needed, and more for large tables."
        )
    status = _child()
    if status in _STATUSES:
        return status, ""
    return 2, (
        "The limit on the process's memory (ulimit -v) is too small for this; nothing was written. "
        "Raise it, or leave it out and limit the memory with --memory."
    )


def _child() -> int:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    command = [sys.executable, "-m", "ldpaudit.cli", *sys.argv[1:]]
    with undisturbed():
        child = subprocess.Popen(command, env=os.environ | _FRUGAL | {CHILD: "1"})

        def pass_on(number: int, _frame: FrameType | None) -> None:
            child.send_signal(number)

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The terminal tells the child, too.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, pass_on)
    return child.wait()
