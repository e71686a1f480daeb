"""Arrow columns: groups of their types, their plain form, and whether they fit into memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.names import ColumnError
from ldpaudit.errors import InputError
from ldpaudit.work.memory import allowance, shown

LISTS: Final = ("list", "large_list", "fixed_size_list")
NUMBERS: Final = ("integer", "floating", "decimal")
TEXTS: Final = ("string", "large_string", "string_view")
BYTES: Final = ("binary", "large_binary")

# Types whose arrays may share bytes with rows that are not theirs.
_VIEWS: Final = ("string_view", "binary_view")
_COMPUTED: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

_memory: Final[ContextVar[int | None]] = ContextVar("memory", default=None)


@contextmanager
def held_to(memory: int | None) -> Iterator[None]:
    """Read in the block no more than so many bytes; None: than half of the machine's."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def allowed() -> int:
    """Return the bytes that reading may take."""
    return allowance(_memory.get())


def check_fits(size: float, what: str = "") -> None:
    """Check that what is to be unpacked, a column or ``what``, fits into memory (InputError)."""
    if size > allowed():
        problem = (
            f"unpacks to {shown(size)}, more than the {shown(allowed())} of memory that may be "
            "used; give more --memory, or write smaller row groups."
        )
        raise InputError(f"{what} {problem}") if what else ColumnError(problem)


def is_any(kind: pa.DataType, *tests: str) -> bool:
    """Return whether a type passes one of the tests of ``pa.types``, such as ``"integer"``."""
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without its dictionary; texts in a form that can be computed on.

    Few bytes can stand for very many in both: what memory cannot hold is refused (ColumnError).
    """
    kind = computed_type(value_type(column.type))
    if kind == column.type:
        return column
    check_fits(sum(map(_unpacked, column.chunks)))
    return column.cast(kind)


def _unpacked(chunk: pa.Array) -> int:
    """Return at most how many bytes the texts of an array with a dictionary, or of views, take."""
    if pa.types.is_dictionary(chunk.type):
        values = chunk.dictionary
        if not is_any(values.type, *TEXTS, *BYTES):
            return 8 * len(chunk)
        if is_any(values.type, *_VIEWS):
            check_fits(_unpacked(values))
            values = values.cast(_COMPUTED[values.type])
        lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
        codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
        return int(np.bincount(codes, minlength=len(lengths)) @ lengths)
    if not is_any(chunk.type, *_VIEWS):
        return int(chunk.nbytes)
    # A view begins with the length of its text.
    views = np.frombuffer(chunk.buffers()[1], dtype=np.int32)[::4]
    present = chunk.is_valid().to_numpy(zero_copy_only=False)
    return int(views[chunk.offset : chunk.offset + len(chunk)][present].sum(dtype=np.int64))


def computed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values of a type can be filtered and compared."""
    return _COMPUTED.get(kind, kind)


def stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without its extension type."""
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)


def without_hidden(column: pa.Array) -> pa.Array:
    """Return a column of the same values, with nothing left in memory under its missing ones.

    Arrow keeps what was in a cell before it was made missing, and its own format writes that down.
    """
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(column.type, without_hidden(column.storage))
    if not _may_hide(column):
        return column
    if pa.types.is_nested(column.type) or is_any(column.type, *_VIEWS):
        return pa.array(column.to_pylist(), column.type)  # Slow, and rare.
    return column.take(pa.array(np.arange(len(column))))


def _may_hide(column: pa.Array) -> bool:
    kind = column.type
    if column.null_count or isinstance(kind, pa.BaseExtensionType):
        return True
    if pa.types.is_struct(kind):
        return any(map(_may_hide, column.flatten()))
    if is_any(kind, *LISTS):
        return _may_hide(column.flatten())
    return pa.types.is_nested(kind) or is_any(kind, *_VIEWS)


def check_complete(missing: int, rows: int, what: str) -> None:
    """Check that no row lacks ``what``, for instance ``"a released label"``."""
    if missing:
        raise InputError(f"Every row must have {what}; {missing:,} of {rows} are missing.")
