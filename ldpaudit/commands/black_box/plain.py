"""What a client's process answers, as bytes that hold nothing but numbers and text.

The client runs in the process that writes them and can write whatever it likes, so they are read as
data of a stranger: nothing is unpickled or imported, and types, sizes and shapes are checked. The
first byte says what follows: a reason why there is nothing, counts, an array, or rows of values.
"""

import json
import re
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from ldpaudit.commands.black_box.estimators.outputs import (
    OutputTable,
    as_outputs,
    as_ragged,
    is_ragged,
    objects,
)
from ldpaudit.files.limits import ANSWER_BYTES, ANSWER_ITEMS, DIGITS
from ldpaudit.tasks.interface import Answer
from ldpaudit.tasks.wire import MessageError, Wire

_REASON, _COUNTS, _ARRAY, _ROWS, _SETS = b"!", b"c", b"a", b"r", b"s"
_LONGEST_REASON: Final = 500
_DTYPE: Final = re.compile(rb"[<>|][biufUS]\d{1,7}")
_LAST_CHARACTER: Final = 0x10FFFF
_TOO_LARGE: Final = (
    f"The function's outputs are too large: the outputs of one call must take at most "
    f"{ANSWER_BYTES >> 20} MiB, and {ANSWER_ITEMS:,} values where they are not an array."
)


def packed(answer: Answer) -> bytes:
    """Write an answer: no content, the counts of events, or a table of outputs."""
    content = answer.content
    if answer.reason or content is None:
        return _REASON + answer.reason.encode("utf-8", "replace")
    if isinstance(content, list):
        return _COUNTS + np.array(content, dtype="<i8").tobytes()
    message = _table(content)
    fits = len(message) <= ANSWER_BYTES and (message[:1] == _ARRAY or _items(message))
    return message if fits else _REASON + _TOO_LARGE.encode()


def _table(table: OutputTable) -> bytes:
    if table.dtype.kind != "O":
        head = f"{table.dtype.str} {table.shape[1]}\n".encode()
        return _ARRAY + head + np.ascontiguousarray(table).tobytes()
    kind = _SETS if is_ragged(table) else _ROWS
    rows = [list(row[0]) for row in table] if kind == _SETS else table.tolist()
    rows = [[_short(entry) for entry in row] for row in rows]
    return kind + json.dumps(rows, default=_tagged, separators=(",", ":")).encode()


def _short(entry: Any) -> Any:
    """Return an entry; a long integer in hexadecimal, which is read in no time."""
    if type(entry) is int and entry.bit_length() > DIGITS:
        return {"int": hex(entry)}
    return entry


def _tagged(entry: Any) -> Any:
    """Return what JSON has no words for: bytes and sets."""
    if isinstance(entry, bytes):
        return {"bytes": entry.hex()}
    return {"set": [_short(part) for part in entry]}


def unpacked(content: bytes) -> Answer:
    """Read an answer.

    Raises
    ------
    MessageError
        If it is none.
    """
    kind, body = content[:1], memoryview(content)[1:]
    try:
        if kind == _REASON:
            return Answer(reason=_printable(bytes(body[: 4 * _LONGEST_REASON])))
        if kind == _COUNTS:
            return Answer(np.frombuffer(body, dtype="<i8").reshape(-1, 2).tolist())
        if kind == _ARRAY:
            return Answer(_array(content))
        if kind in (_ROWS, _SETS) and _items(content):
            return Answer(_rows(bytes(body), sets=kind == _SETS))
    except (ValueError, TypeError, RecursionError, LookupError):
        pass
    raise MessageError


def _printable(text: bytes) -> str:
    said = text.decode("utf-8", "replace")[:_LONGEST_REASON]
    return "".join(letter if letter.isprintable() else "?" for letter in said)


def _items(content: bytes) -> bool:
    """Return whether rows hold few enough values, before any of them is made."""
    return content.count(b",") + content.count(b"[") <= ANSWER_ITEMS


def _array(content: bytes) -> OutputTable:
    head, _, _ = content[1:64].partition(b"\n")
    kind, width = head.split(b" ")
    if not _DTYPE.fullmatch(kind):
        raise ValueError
    values = np.frombuffer(content, dtype=np.dtype(kind.decode()), offset=len(head) + 2)
    table = values.reshape(-1, int(width))
    if table.dtype.kind == "U":
        letters = values.view(f"{table.dtype.str[0]}u4")
        if letters.size and letters.max() > _LAST_CHARACTER:
            raise ValueError
    if table.dtype.kind == "b":
        table = values.view(np.uint8).reshape(table.shape) != 0
    return as_outputs(table, len(table)) if table.size else table


def _rows(text: bytes, *, sets: bool) -> OutputTable:
    rows = json.loads(text, object_hook=_untagged)
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ValueError
    if sets:
        return as_ragged(rows)
    widths = {len(row) for row in rows}
    if len(widths) > 1 or not all(isinstance(e, Hashable) for row in rows for e in row):
        raise ValueError
    return objects(rows, widths.pop() if widths else 1)


def _untagged(said: dict[str, Any]) -> Any:
    ((what, value),) = said.items()
    if what == "int":
        return int(value, 16)
    if what == "bytes":
        return bytes.fromhex(value)
    if what == "set":
        return frozenset(value)
    raise ValueError


PLAIN: Final = Wire(packed, unpacked, ANSWER_BYTES + 64)
"""How a client's process answers."""
