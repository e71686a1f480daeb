"""How much memory an audit may use: sizes as people write them, and what the machine has."""

import contextlib
import math
import mmap
import os
import re
from pathlib import Path
from typing import Final

from ldpaudit.errors import InputError

_UNITS: Final = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)},
    **{letter: 1024**power for power, letter in enumerate("kmgt", start=1)},
}
_SIZE: Final = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)
_FEW: Final = 1 << 20
_SHARE: Final = 0.5
"""Of the machine's memory, where nothing is asked for."""
_CONTROL_GROUPS: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)

LEAST: Final = 600 << 20
"""Bytes for Python, the libraries and the audits' working blocks, whatever the table."""

MOST_ROWS, FEWEST_ROWS = 1 << 21, 1 << 18
"""Rows of a release that all audits look at, and those with very many columns or classes."""
_MOST_CELLS, _MOST_SHARES = 1 << 26, 1 << 25
"""Rows times columns, and rows times classes, of what audits look at."""
RUN: Final = 1 << 8
"""Rows that follow each other and are looked at together."""


def size_of(text: str | float) -> int:
    """Return the bytes of a size such as ``"4GiB"``, ``"500 MB"`` or ``"2G"`` (GiB).

    A number alone is one of bytes, or of GiB where so few bytes would make no sense.

    Raises
    ------
    InputError
        If it is no size, or too little for any audit.
    """
    match = _SIZE.fullmatch(str(text))
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise InputError(f"The memory must be a size such as 4GiB or 500MB. Got {str(text)!r}.")
    size = float(match[1]) * unit
    if not match[2] and size < _FEW:
        size *= 1 << 30
    if not LEAST <= size < 2**60:
        raise InputError(
            f"The memory must be at least {shown(LEAST)} (0.6GiB) for any audit: Python and the "
            f"libraries alone take most of that. Got {shown(size)}."
        )
    return int(size)


def shown(size: float) -> str:
    """Return a number of bytes in words, rounded up: ``"2.1 GiB"``, ``"640 MiB"``."""
    if size >= 1 << 30:
        return f"{math.ceil(size / 2**30 * 10) / 10:g} GiB"
    return f"{math.ceil(size / 2**20)} MiB"


def allowance(asked: int | None) -> int:
    """Return the bytes that an audit may use: what was asked for, else half of the machine's."""
    return asked if asked is not None else int(machine_memory() * _SHARE)


def machine_memory() -> int:
    """Return the bytes of memory that this process can have: the machine's, or a limit below it."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), _address_space()]
    for place in _CONTROL_GROUPS:
        with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
            limits.append(int(Path(place).read_text()))
    return min(limits)


def _address_space() -> int:
    limit = address_limit()
    return 1 << 62 if limit is None else limit


def address_limit() -> int | None:
    """Return the bytes that this process may address (``ulimit -v``), None without a limit."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def has_addresses_for(size: int) -> bool:
    """Return whether so many bytes of addresses, without memory behind them, can be had."""
    if address_limit() is None:
        return True
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except (OSError, MemoryError):
        return False
    return True


def most_rows(columns: int, classes: int) -> int:
    """Return how many rows audits look at: 2²¹, or fewer with many columns or classes."""
    room = min(_MOST_CELLS // max(columns, 1), _MOST_SHARES // max(classes, 1), MOST_ROWS)
    return max(room, min(FEWEST_ROWS, MOST_ROWS)) // RUN * RUN
