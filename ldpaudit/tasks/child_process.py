"""The child's end of :mod:`ldpaudit.tasks.processes`: it does tasks and answers."""

import importlib
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ldpaudit.tasks.interface import Answer, attempt
from ldpaudit.tasks.keeper import kept
from ldpaudit.tasks.wire import post, received


def serve() -> None:
    """Do tasks until the socket closes; arguments: its descriptor, the parent's id."""
    descriptor, parent = map(int, sys.argv[1:3])
    kept(parent, descriptor)
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        place, setup, wire = received(connection)
        prepared = attempt(_imported(place), setup)
        post(connection, wire.pack(Answer(reason=prepared.reason)))
        while not prepared.reason:
            post(connection, wire.pack(attempt(prepared.content, received(connection))))


def _imported(place: str) -> Callable[[Any], Callable[[Any], Any]]:
    module, _, name = place.partition(":")
    function: Callable[[Any], Callable[[Any], Any]] = getattr(importlib.import_module(module), name)
    return function
