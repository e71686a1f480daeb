"""How many rows of a table there is memory for, and which are read."""

from typing import Final

from ldpaudit.datasets.formats.tables import TableSource, allowed
from ldpaudit.datasets.names import Roles, quoted
from ldpaudit.errors import InputError
from ldpaudit.release import IndexArray
from ldpaudit.work.memory import MOST_ROWS_LOOKED_AT, RUN, most_rows, rows_looked_at, shown

# Bytes of Python and the libraries.
_BASE: Final = 450 << 20
# What an audit needs of each row besides features: labels, halves, and one pass over them.
_BYTES_PER_ROW: Final = 24
# Bytes of each row that audits look at: in all, for each column, and for each class.
_WORKING, _PER_COLUMN, _PER_CLASS = 220, 12, 40
# For so many classes there is room where rows are drawn before the labels are read.
_CLASSES_EXPECTED: Final = 32
# Bytes of a CSV file from which on its rows are counted before they are read.
_LARGE: Final = 1 << 26


def rows_to_read(
    table: TableSource, roles: Roles, memory: int | None, *, joined: bool
) -> tuple[int | None, IndexArray | None]:
    """Return how many rows there are, where it is known, and the rows to read; None for all."""
    # Features must fit into half of the memory, and what an audit needs into all of it; else rows
    # are drawn as audits draw them.
    if not table.sparse and (
        table.location is None or (table.text and table.location.size() < _LARGE)
    ):
        return None, None
    rows, width, columns = table.row_count or 0, table.width(roles.features), len(roles.features)
    # How many classes there are is not known yet, nor in how many parts numbers will be seen.
    classes = _CLASSES_EXPECTED
    least = _BYTES_PER_ROW * rows if memory is None else _least_memory(rows, columns, classes)
    if 8 * rows * width <= allowed() and least <= allowed():
        return rows, None
    of_each = _BYTES_PER_ROW + _bytes_looked_at(columns, classes)
    room = min(allowed() / max(8 * width, 1), max(allowed() - _BASE, 0) / of_each)
    some = rows_looked_at(rows, 0, min(most_rows(int(width), 2), int(room) // RUN * RUN))
    if joined or some is None or not len(some):
        raise InputError(
            f"The rows of {quoted(table.name)} take too much of the memory that may be used "
            f"({shown(allowed())}), and all of them are needed; give more --memory, or use fewer "
            "columns (--features)."
        )
    return rows, some


def check_memory(
    memory: int | None, rows: int, columns: int, classes: int, *, every: int | None = None
) -> None:
    """Refuse an amount of memory in which a table cannot be audited; say the least (InputError).

    ``every``: the rows of a file of which ``rows`` were drawn; with more memory more would be.
    """
    if memory is not None and memory < _least_memory(rows, columns, classes):
        rows = rows if every is None else min(MOST_ROWS_LOOKED_AT, every)
        least = _least_memory(rows, columns, classes)
        if every is not None and _least_memory(every, columns, _CLASSES_EXPECTED) <= least:
            rows, least = every, _least_memory(every, columns, classes)
        raise InputError(
            f"--memory is {shown(memory)}; {rows:,} rows with {columns:,} "
            f"column{'s' if columns != 1 else ''} and {classes:,} classes need at least "
            f"{shown(least)}."
        )


def _least_memory(rows: int, columns: int, classes: int) -> int:
    """Return the bytes that an audit of a table takes at least."""
    looked_at = min(rows, most_rows(columns, classes))
    return _BASE + rows * _BYTES_PER_ROW + looked_at * _bytes_looked_at(columns, classes)


def _bytes_looked_at(columns: int, classes: int) -> int:
    """Return the bytes that an audit takes for each row that it looks at."""
    return _WORKING + _PER_COLUMN * columns + _PER_CLASS * classes
