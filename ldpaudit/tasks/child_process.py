"""The child's end of :mod:`ldpaudit.tasks.processes`: it does tasks and answers."""

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final

from ldpaudit.tasks.interface import Answer, attempt

_TICK: Final = 0.5
"""Seconds between two looks at whether the parent is still there."""


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
