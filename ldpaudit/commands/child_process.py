"""The child's end of :mod:`ldpaudit.commands.processes`: it does tasks and answers."""

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from ldpaudit.errors import LdpAuditError

_TICK: Final = 0.5
"""Seconds between two looks at whether the parent is still there."""


@dataclass(frozen=True)
class Answer:
    """The answer to a task.

    Attributes
    ----------
    content : object
        What the task returned.
    reason : str
        Why it failed, in one line without data; empty where it did not.
    late : bool
        Whether it took longer than the time limit.
    status : int or None
        The exit status of a process that ended before it answered.
    """

    content: Any = None
    reason: str = ""
    late: bool = False
    status: int | None = None


def attempt(work: Callable[[Any], Any], task: Any) -> Answer:
    """Do a task; any failure becomes one line without data."""
    try:
        return Answer(work(task))
    except LdpAuditError as error:
        reason = " ".join(str(error).split())
    except MemoryError:
        reason = "It needs more memory than there is."
    except Exception as error:
        # The text of a foreign exception may hold data, so only its type is shown.
        reason = f"Internal fault ({type(error).__name__})."
    return Answer(reason=reason)


def serve() -> None:
    """Do tasks until the pipe closes; arguments: the pipe's descriptor, the parent's id."""
    descriptor, parent = map(int, sys.argv[1:3])
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    connection: Any = Connection(descriptor)
    with suppress(EOFError, BrokenPipeError):
        place, setup = connection.recv()
        prepared = attempt(_imported(place), setup)
        connection.send(Answer(reason=prepared.reason))
        while not prepared.reason:
            connection.send(attempt(prepared.content, connection.recv()))


def _imported(place: str) -> Callable[[Any], Callable[[Any], Any]]:
    module, _, name = place.partition(":")
    function: Callable[[Any], Callable[[Any], Any]] = getattr(importlib.import_module(module), name)
    return function


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_TICK)
    os._exit(1)
