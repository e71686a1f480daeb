"""How parent and child talk: whole messages through a socket, read without waiting for more."""

import math
import pickle
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ldpaudit.tasks.interface import Answer

_LENGTH: Final = struct.Struct("!Q")
_BLOCK: Final = 1 << 20


class MessageError(Exception):
    """What came is no answer."""


@dataclass(frozen=True)
class Wire:
    """How the answers of a child are written and read.

    Attributes
    ----------
    pack, unpack : callable
        Functions of modules. ``unpack`` gets whatever came, and raises MessageError where it is
        no answer.
    most : int
        Bytes of an answer.
    """

    pack: Callable[[Answer], bytes]
    unpack: Callable[[bytes], Answer]
    most: int


TRUSTED: Final = Wire(pickle.dumps, pickle.loads, 1 << 62)
"""Of children that run nothing but code that this process would run, too."""


@dataclass
class Inbox:
    """What a child has sent and was not read yet."""

    source: socket.socket
    most: int
    _held: bytearray = field(default_factory=bytearray)

    def take(self) -> bytes | None:
        """Return a whole message, or None where more of it is to come.

        Raises
        ------
        MessageError
            If it is longer than allowed.
        EOFError, OSError
            If nothing will come.
        """
        while (wanted := self._wanted()) > 0:
            try:
                block = self.source.recv(min(wanted, _BLOCK), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            if not block:
                raise EOFError
            self._held += block
        content, self._held = bytes(self._held[_LENGTH.size :]), bytearray()
        return content

    def _wanted(self) -> int:
        """Return how many bytes a whole message still needs."""
        held = len(self._held)
        if held < _LENGTH.size:
            return _LENGTH.size - held
        length = _LENGTH.unpack_from(self._held)[0]
        if length > self.most:
            raise MessageError
        return int(_LENGTH.size + length - held)


def post(target: socket.socket, content: bytes, seconds: float = math.inf) -> None:
    """Send a message; OSError where it is not taken in time."""
    target.settimeout(None if seconds == math.inf else seconds)
    try:
        target.sendall(_LENGTH.pack(len(content)) + content)
    finally:
        target.settimeout(None)  # A time limit would make every look into an inbox wait.


def received(source: socket.socket) -> Any:
    """Wait for the parent's next message, and return what it holds (EOFError where there is none).

    Only the child's end reads like this: a parent may tell its child what to run.
    """
    length = _LENGTH.unpack(_exactly(source, _LENGTH.size))[0]
    return pickle.loads(_exactly(source, length))  # from the parent # nosec B301


def _exactly(source: socket.socket, length: int) -> bytearray:
    held = bytearray()
    while len(held) < length:
        block = source.recv(min(length - len(held), _BLOCK))
        if not block:
            raise EOFError
        held += block
    return held
