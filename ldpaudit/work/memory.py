"""How much memory an audit may use, and a folder on the disk for what is in use for a while."""

import contextlib
import math
import mmap
import os
import re
import shutil
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ldpaudit.errors import InputError, OutputError
from ldpaudit.work.files import hold
from ldpaudit.work.interruption import undisturbed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SIZE: Final = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(?:([kmgt])(i?b)?|(b)?)\s*", re.IGNORECASE)
_FEW: Final = 1 << 20
# Of the machine's memory, where nothing is asked for.
_SHARE: Final = 0.5
_CONTROL_GROUPS: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)

# Bytes for Python, the libraries and the audits' working blocks, whatever the table.
LEAST: Final = 600 << 20

# Rows of a release that all audits look at, and those with very many columns or classes.
MOST_ROWS_LOOKED_AT, FEWEST_ROWS = 1 << 21, 1 << 18
# Rows times columns, and rows times classes, of what audits look at.
_MOST_CELLS, _MOST_SHARES = 1 << 26, 1 << 25
# Rows from which on reading leaves much memory that nothing uses any more.
MANY_ROWS: Final = 1 << 20
# Rows that follow each other and are looked at together.
RUN: Final = 1 << 8
# The first rows are always among them: seeds are tried there, and rows far apart compared.
FIRST_ROWS: Final = 1 << 16
_PREFIX: Final = "ldpaudit-scratch-"
_TIMES: Final = 3
_ARENA_MAX: Final = -8  # M_ARENA_MAX of mallopt(3).


def size_of(text: str | float) -> int:
    """Return the bytes of a size such as ``"4GiB"``, ``"500 MB"`` or ``"2G"`` (GiB)."""
    # A number alone is one of bytes, or of GiB where so few bytes would make no sense.
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise InputError(f"The memory must be a size such as 4GiB or 500MB. Got {str(text)!r}.")
    power = "kmgt".index(match[2].lower()) + 1 if match[2] else 0
    size = float(match[1]) * (1000 if (match[3] or "").lower() == "b" else 1024) ** power
    if not match[2] and not match[4] and size < _FEW:
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
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), address_limit() or 1 << 62]
    for place in _CONTROL_GROUPS:
        # "max" is no number: no limit. A signal that closes the file would be reported as a fault.
        with undisturbed(), contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(place).read_text()))
    return min(limits)


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
    room = min(_MOST_CELLS // max(columns, 1), _MOST_SHARES // max(classes, 1), MOST_ROWS_LOOKED_AT)
    return max(room, min(FEWEST_ROWS, MOST_ROWS_LOOKED_AT)) // RUN * RUN


def rows_looked_at(rows: int, seed: int, most: int) -> "npt.NDArray[np.int64] | None":
    """Return the rows of a large release to look at, int64 in order; None where it is all rows."""
    import numpy as np  # Not where options are only read.

    from ldpaudit.randomness import child_generator

    if rows <= most:
        return None
    first = min(FIRST_ROWS, most // 2) // RUN
    others = np.arange(first, rows // RUN)
    rng = child_generator(seed, "rows looked at")
    chosen = rng.choice(others, most // RUN - first, replace=False)
    starts = np.concatenate([np.arange(first), np.sort(chosen)]) * RUN
    return np.asarray((starts[:, None] + np.arange(RUN)).reshape(-1))


class Scratch:
    """A private folder on the disk for temporary files; a context manager.

    The folder is made when it is first needed, in the folder for temporary files (``TMPDIR``),
    and nobody but its owner may read it (mode 0700). It is removed when the block ends, by an
    error or an interruption too, and at the latest when the program does.
    """

    # While it is in use its lock is held; nobody holds those of killed runs, and the next run that
    # makes a folder removes them.

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._close: Any = None

    @property
    def folder(self) -> Path:
        """The folder, made at the first call; OutputError where that is not possible."""
        place = Path(tempfile.gettempdir())
        for other in place.glob(f"{_PREFIX}*") if self._folder is None else ():
            with contextlib.suppress(OSError):
                lock = os.open(other, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                own = os.fstat(lock).st_uid == os.getuid() and hold(lock, certainly=True)
                _remove(other if own else None, lock, os.getpid())
        while self._folder is None:
            try:
                with undisturbed():
                    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
                    lock = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
                    if hold(lock) and made.exists():  # Else another run has just removed it.
                        self._close = weakref.finalize(self, _remove, made, lock, os.getpid())
                        self._folder = made
            except OSError as error:
                why = (error.strerror or "the system gives no reason").lower()
                raise OutputError(
                    f"The scratch folder cannot be used: {why}; set TMPDIR."
                ) from None
        return self._folder

    def close(self) -> None:
        """Remove the folder."""
        if self._close is not None:
            with undisturbed():
                self._close()
        self._folder = self._close = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(folder: Path | None, lock: int, owner: int) -> None:
    """Remove a folder, in the process that made it and not in one that was forked from it."""
    if os.getpid() == owner:
        for _ in range(_TIMES if folder else 0):  # A thread may write there still.
            shutil.rmtree(str(folder), ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(lock)


def few_arenas() -> None:
    """Let all threads take memory from two places, where the C library is glibc."""
    # By default each thread has a place of its own, and what one gives back no other can use.
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


# Seconds between two times that memory is given back, which takes a few thousandths of one.
_BETWEEN: Final = 1.0
_given_back = [0.0]


def give_back(*, at_once: bool = False) -> None:
    """Give memory that is free back to the system: Arrow's, and that of the C library, if glibc's.

    It is done now and then, or at each call where it is asked for ``at_once``.
    """
    # What small blocks stand between would else stay with the process, however large it is.
    import ctypes

    now = time.monotonic()
    if at_once or now - _given_back[0] >= _BETWEEN:
        _given_back[0] = now
        if (arrow := sys.modules.get("pyarrow")) is not None:
            arrow.default_memory_pool().release_unused()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
