"""How wide a table may be, by its header alone, and how large a compressed one when unpacked."""

import itertools
from collections.abc import Iterator
from typing import Any, Final

from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.files.limits import (
    COLUMNS,
    HEADER_BYTES,
    UNPACKED_BYTES,
    UNPACKED_FREE,
    UNPACKED_TIMES,
)

_FIELDS_IN_LIST: Final = 3
"""Entries of a Parquet schema for one column of lists; a column of numbers has one."""


def check_width(columns: int, name: str, what: str = "columns") -> None:
    """Check that a table does not have too many columns.

    Raises
    ------
    InputError
    """
    if columns > COLUMNS:
        raise InputError(
            f"The table {quoted(name)} has {columns:,} {what}; at most {COLUMNS:,} "
            "columns can be read. Write many features as one column of lists of numbers."
        )


def lines_of(text: Any, name: str, skipped: int = 0) -> Iterator[str]:
    """Yield the lines of a text file from the header on, the header only if it can be one.

    ``skipped``: the lines before it.

    Raises
    ------
    InputError
        If the first line does not end within 16 million characters.
    """
    for _ in range(skipped):
        text.readline(HEADER_BYTES)
    first = text.readline(HEADER_BYTES)
    if len(first) >= HEADER_BYTES:
        raise InputError(
            f"The first line of {quoted(name)} must name the columns; it is longer than "
            f"{HEADER_BYTES:,} characters."
        )
    return itertools.chain([first] if first else [], text)


def check_footer(footer: bytes, name: str) -> None:
    """Check the width of a Parquet file by the first bytes of its footer.

    A footer begins with its version, field 1, and the list of the schema's entries, field 2, in
    Thrift's compact protocol: the length of the list stands before its entries. A footer of
    another form is left to the reader.

    Parameters
    ----------
    footer : bytes
        The first bytes of the footer, 16 suffice.
    name : str
        The file's base name.

    Raises
    ------
    InputError
        If the file has more than three times as many entries as columns may be.
    """
    if footer[:1] != b"\x15":
        return
    _, place = _varint(footer, 1)
    if footer[place : place + 1] != b"\x19":
        return
    size, place = (*footer[place + 1 : place + 2], 0)[0] >> 4, place + 2
    if size == 15:
        size, _ = _varint(footer, place)
    if size - 1 > _FIELDS_IN_LIST * COLUMNS:
        check_width(size - 1, name, "columns and nested fields")


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, lowest first, and the place after it."""
    value, shift = 0, 0
    while place < len(content):
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            break
    return value, place


class Unpacked:
    """The content of a compressed file, as far as an honest file's can go."""

    def __init__(self, stream: Any, packed: int | None, name: str) -> None:
        self._stream, self._packed, self._name, self._seen = stream, packed, name, 0
        self.close = stream.close

    @property
    def closed(self) -> bool:
        """Whether nothing more can be read."""
        return bool(self._stream.closed)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes (InputError where there are too many)."""
        block = bytes(self._stream.read(None if size < 0 else size))
        self._seen += len(block)
        check_unpacked(self._seen, self._packed, self._name, UNPACKED_BYTES)
        return block


def check_unpacked(unpacked: int, packed: int | None, name: str, most: int) -> None:
    """Check that a file's content is not out of all proportion to the file (InputError).

    ``packed``: the bytes of the file, None where that is not known; ``most``: bytes that no content
    may have.
    """
    honest = most if packed is None else max(UNPACKED_FREE, UNPACKED_TIMES * packed)
    if unpacked > min(most, honest):
        raise InputError(
            f"The file {quoted(name)} is too large when unpacked: more than {most >> 30} GiB, or "
            f"than {UNPACKED_TIMES} times the file; write Parquet."
        )
