"""How much memory processes take, and how much there is: as the system tells it, in GiB."""

import contextlib
import os
import resource
import sys
from pathlib import Path
from typing import Final

_GIB: Final = 1 << 30
_KIB_FIELDS: Final = 1024
_SHARE: Final = 0.75
_UNKNOWN: Final = 4.0


def peak() -> float:
    """Return the most memory that this process has held."""
    # Of a new process ru_maxrss still knows its parent's peak; VmHWM is its own.
    own = _field(Path("/proc/self/status"), "VmHWM:")
    if own is not None:
        return own
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used * (1 if sys.platform == "darwin" else _KIB_FIELDS) / _GIB


def resident(pid: int) -> float:
    """Return the memory that a process holds now; 0 where the system does not tell."""
    return _field(Path(f"/proc/{pid}/status"), "VmRSS:") or 0.0


def default_cap() -> float:
    """Return three quarters of the memory that is free."""
    free = _field(Path("/proc/meminfo"), "MemAvailable:")
    if free is None:
        with contextlib.suppress(ValueError, OSError):
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB
    return _SHARE * (free or _UNKNOWN)


def workers_within(cap: float, largest: float, processes: int) -> int:
    """Return how many processes of a peak fit under the cap: 1 at least, ``processes`` at most."""
    return max(1, min(processes, int(cap / largest))) if largest > 0 else 1


def _field(path: Path, name: str) -> float | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in path.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * _KIB_FIELDS / _GIB
    return None
