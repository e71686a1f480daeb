"""Files that change while they are read: noticed by size, times and place on the disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError


class Watched(Protocol):
    """Files that can be told from later ones of the same names."""

    @property
    def name(self) -> str:
        """What a message calls them."""

    def stamp(self) -> tuple[Any, ...]:
        """Return what changes when any of them does."""


_Seen = list[tuple[Watched, tuple[Any, ...]]]
_seen: Final[ContextVar[_Seen | None]] = ContextVar("seen", default=None)


def watch(files: Watched) -> None:
    """Note how files are, before anything of them is read."""
    seen = _seen.get()
    if seen is not None:
        seen.append((files, files.stamp()))


def check_unchanged() -> None:
    """Check that the files that were opened in the block around this are as they were then.

    Raises
    ------
    InputError
        If one was written to, replaced or removed.
    """
    for files, before in _seen.get() or ():
        if files.stamp() != before:
            raise InputError(
                f"The file {quoted(files.name)} changed while it was being read; run again when "
                "nothing writes to it."
            )


@contextmanager
def watching() -> Iterator[None]:
    """Note the files that are opened in the block. Also a decorator.

    Blocks may lie within others: the outer one knows the inner one's files, too.
    """
    around, seen = _seen.get(), list[tuple[Watched, tuple[Any, ...]]]()
    token = _seen.set(seen)
    try:
        yield
    finally:
        _seen.reset(token)
    if around is not None:
        around.extend(seen)


@contextmanager
def unwatched() -> Iterator[None]:
    """Open in the block what may change: files that are replaced later."""
    token = _seen.set(None)
    try:
        yield
    finally:
        _seen.reset(token)


@contextmanager
def unchanged() -> Iterator[None]:
    """Refuse, at the end of the block, what it read of files that changed meanwhile.

    Also a decorator.

    Raises
    ------
    InputError
        As :func:`check_unchanged` does.
    """
    with watching():
        yield
        check_unchanged()
