"""The declaration in a Parquet file's footer: every page of data stays as it is, byte for byte.

A footer is one Thrift structure in the compact protocol; its field 5 lists the file's metadata as
pairs of a key and a value. Only that field is replaced.
"""

import base64
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc

from ldpaudit.datasets.formats.tabular import DECLARATION_KEY

_ARROW: Final = b"ARROW:schema"
_METADATA: Final = 5
_BINARY, _LIST, _STRUCT = 8, 9, 12
_WIDTHS: Final = {3: 1, 7: 8, 13: 16}
"""Bytes of values of a fixed width: a byte, a double, a UUID."""
_TAIL: Final = 8
"""The length of the footer and the magic number."""


def read_footer(stream: Any) -> tuple[int, bytes]:
    """Return where the footer of an open file starts, and the footer."""
    end = stream.seek(0, 2) - _TAIL
    stream.seek(end)
    length = int.from_bytes(stream.read(4), "little")
    start = end - length
    stream.seek(start)
    return start, stream.read(length)


def with_declaration(footer: bytes, declaration: bytes) -> bytes:
    """Return the footer with a declaration among the file's metadata, added or replaced.

    Arrow keeps a copy of the metadata in its own schema, which it believes: it is changed as well.

    Parameters
    ----------
    footer : bytes
        Of a file that has been opened before: it is well-formed.
    declaration : bytes

    Returns
    -------
    bytes
        All other entries and fields are unchanged.
    """
    before, place, rest, entries = 0, 0, None, []
    for number, content, end in _fields(footer, 0):
        if number < _METADATA:
            before, place = number, end
        elif number == _METADATA:
            entries, rest = list(_entries(footer, content)), footer[end:]
            break
    new = {DECLARATION_KEY: declaration}
    stored = next((value for name, value, _ in entries if name == _ARROW), None)
    if stored is not None:
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(stored)))
        schema = schema.with_metadata({**(schema.metadata or {}), **new})
        new[_ARROW] = base64.b64encode(schema.serialize().to_pybytes())
    kept = [entry for name, _, entry in entries if name not in new]
    field = _listed([*kept, *(_pair(name, value) for name, value in new.items())], before)
    return footer[:place] + field + (_renumbered(footer[place:], before) if rest is None else rest)


def _listed(pairs: list[bytes], before: int) -> bytes:
    """Return the field of the metadata, after the field with the number ``before``."""
    head = bytes([(_METADATA - before) << 4 | _LIST])
    size = len(pairs)
    count = bytes([size << 4 | _STRUCT]) if size < 15 else b"\xfc" + _varint_of(size)
    return head + count + b"".join(pairs)


def _pair(name: bytes, value: bytes) -> bytes:
    return b"".join(
        (b"\x18", _varint_of(len(name)), name, b"\x18", _varint_of(len(value)), value, b"\0")
    )


def _renumbered(following: bytes, before: int) -> bytes:
    """Return the fields after a new one; the first one's number is told by the difference."""
    delta, kind = following[0] >> 4, following[0] & 0x0F
    if kind == 0 or delta == 0:  # The end, or a number of its own.
        return following
    return bytes([(delta + before - _METADATA) << 4 | kind]) + following[1:]


def _fields(content: bytes, place: int) -> Iterator[tuple[int, int, int]]:
    """Yield each field of a structure: its number, and where its value starts and ends."""
    number = 0
    while content[place] & 0x0F:
        delta, kind = content[place] >> 4, content[place] & 0x0F
        place += 1
        if delta:
            number += delta
        else:
            zigzag, place = _varint(content, place)
            number = (zigzag >> 1) ^ -(zigzag & 1)
        value = place
        place = place if kind in (1, 2) else _skipped(content, place, kind)
        yield number, value, place


def _skipped(content: bytes, place: int, kind: int) -> int:
    """Return the place after a value."""
    if kind in _WIDTHS:
        return place + _WIDTHS[kind]
    if kind in (4, 5, 6):
        return _varint(content, place)[1]
    if kind == _BINARY:
        length, place = _varint(content, place)
        return place + length
    if kind == _STRUCT:
        for _, _, end in _fields(content, place):
            place = end
        return place + 1
    if kind in (_LIST, 10):
        size, inner, place = _list(content, place)
        for _ in range(size):
            place = place + 1 if inner in (1, 2) else _skipped(content, place, inner)
        return place
    raise ValueError("not a Parquet footer")


def _list(content: bytes, place: int) -> tuple[int, int, int]:
    """Return a list's size, the kind of its entries, and where they start."""
    size, inner = content[place] >> 4, content[place] & 0x0F
    place += 1
    if size == 15:
        size, place = _varint(content, place)
    return size, inner, place


def _entries(content: bytes, place: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield each pair of the metadata: its key, its value, and its bytes."""
    size, _, place = _list(content, place)
    for _ in range(size):
        end, parts = _skipped(content, place, _STRUCT), {1: b"", 2: b""}
        for number, value, stop in _fields(content, place):
            parts[number] = content[_varint(content, value)[1] : stop]
        yield parts[1], parts[2], content[place:end]
        place = end


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, lowest first, and the place after it."""
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _varint_of(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
