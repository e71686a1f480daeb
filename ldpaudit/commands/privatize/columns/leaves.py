"""Columns as plain arrays: nested ones taken apart, texts also without their digits."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import LISTS, is_any

_ENTRIES = 3
"""So many entries of each list are looked at."""

Path = tuple[str, ...]
"""A column's name, then the fields or entries that lead to a plain array."""


def leaves(name: str, column: pa.Array) -> Iterator[tuple[Path, pa.Array]]:
    """Yield the plain arrays, all of n values, that a column consists of."""
    yield from _leaves((name,), column)


def _leaves(path: Path, column: pa.Array) -> Iterator[tuple[Path, pa.Array]]:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type):
        for place in range(column.type.num_fields):
            yield from _leaves((*path, f"field {place}"), pc.struct_field(column, [place]))
    elif is_any(column.type, *LISTS):
        lengths = pc.list_value_length(column)
        yield (*path, "length"), lengths
        shortest = pc.min(lengths).as_py() or 0
        for place in range(min(shortest, _ENTRIES)):
            yield from _leaves((*path, f"entry {place}"), pc.list_element(column, place))
    elif not pa.types.is_nested(column.type):
        yield path, column
