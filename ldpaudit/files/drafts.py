"""Files that are not finished yet, beside their targets: whose they are, and which are left over.

A draft is called ``.ldpaudit-<16 hexadecimal digits>.tmp``. The process that writes it holds a lock
on it, and a lock goes with its process, however that ends. So a draft that this user owns and
nobody holds the lock of was left by a run that was killed; where the file system knows no locks,
none is known to be left over.

What was at a target before is kept under such a name too, with eight digits that tell the target,
until the new file is in its place. It may be all that there is of a former file, so it is only
removed once a new one took the place of that same target.
"""

import hashlib
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"\.ldpaudit-[0-9a-f]{16}(-[0-9a-f]{8})?\.tmp")


def draft_of(target: Path, *, former: bool = False) -> Path:
    """Return a new name beside a target, for what is to take its place or was there before."""
    kept = f"-{_digits(target)}" if former else ""
    return target.parent / f".ldpaudit-{secrets.token_hex(8)}{kept}.tmp"


def open_draft(path: Path, mode: int) -> int:
    """Make a draft and hold its lock; return its descriptor, to be closed when it has its name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        descriptor = os.open(path, flags, mode)
        hold(descriptor, wait=True)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # Another run took it for a left-over, before it had its lock.


def usual_mode() -> int:
    """Return the mode that this user's new files have."""
    mask = os.umask(0o077)  # The only way to ask: stricter, for a moment.
    os.umask(mask)
    return 0o666 & ~mask


def hold(descriptor: int, *, wait: bool = False) -> bool:
    """Hold the lock of a file as long as its descriptor is open; return whether that is so."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (OSError, ImportError):
        return False
    return True


def remove_left_over(folder: Path, replaced: Path | None = None) -> None:
    """Remove drafts of killed runs from a folder, or what they kept of a file, now replaced."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found and found[1] == (None if replaced is None else f"-{_digits(replaced)}"):
                with suppress(OSError):
                    _remove_unheld(Path(entry.path))


def _remove_unheld(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        known = os.fstat(descriptor)
        own = stat.S_ISREG(known.st_mode) and known.st_uid == os.getuid()
        if own and hold(descriptor) and os.path.samestat(known, path.lstat()):
            path.unlink()
    finally:
        os.close(descriptor)


def _digits(target: Path) -> str:
    return hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]
