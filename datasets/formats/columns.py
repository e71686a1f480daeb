"""Arrow columns: groups of their types, their plain form, and whether they are complete."""

from typing import Final

import numpy as np
import pyarrow as pa

from ldpaudit.errors import InputError

LISTS: Final = ("list", "large_list", "fixed_size_list")
NUMBERS: Final = ("integer", "floating", "decimal")
TEXTS: Final = ("string", "large_string", "string_view")
BYTES: Final = ("binary", "large_binary")

_VIEWS: Final = ("string_view", "binary_view")
"""Types whose arrays may share bytes with rows that are not theirs."""
_COMPUTED: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def is_any(kind: pa.DataType, *tests: str) -> bool:
    """Return whether a type passes one of the tests of ``pa.types``, such as ``"integer"``."""
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without its dictionary; texts in a form that can be computed on."""
    kind = computed_type(value_type(column.type))
    return column if kind == column.type else column.cast(kind)


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
    """Check that no row lacks ``what``, for instance ``"a released label"``.

    Raises
    ------
    InputError
        With the count of rows that do.
    """
    if missing:
        raise InputError(f"Every row must have {what}; {missing:,} of {rows} are missing.")
