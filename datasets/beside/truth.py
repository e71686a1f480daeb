"""True labels beside a release: in the same row order, or joined on an id."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.batchwise.labels import coded_columns
from ldpaudit.datasets.beside.channel_tables import RELEASED
from ldpaudit.datasets.formats.columns import decoded, is_any
from ldpaudit.datasets.formats.opening import FileBatches, open_table
from ldpaudit.datasets.formats.tabular import MemoryTable, TableSource
from ldpaudit.datasets.labels import LabelColumn, read_labels
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.numbers import read_numbers
from ldpaudit.datasets.roles import DEFAULT_LABEL
from ldpaudit.datasets.sparse.svmlight import is_svmlight
from ldpaudit.datasets.sparse.table import open_svmlight
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray

LARGE: Final = 1 << 17
"""From so many rows on labels are read batch by batch."""


@dataclass(frozen=True)
class Truth:
    """The true labels in the release's row order.

    Attributes
    ----------
    labels : LabelColumn, or float64 array of shape (n,) for a mechanism on numbers
    column : str or None
        The name of their column; None for a bare array.
    unused : int
        How many rows of the truth belong to no row of the release.
    remark : str
        How the file was read, where that is not as usual.
    """

    labels: LabelColumn | FloatArray
    column: str | None
    unused: int = 0
    remark: str = ""


def read_truth(
    source: Any,
    rows: int,
    *,
    label: str,
    truth_column: str | None = None,
    id_column: str | None = None,
    identifiers: pa.ChunkedArray | None = None,
    numeric: bool = False,
    files: FileOptions = AS_FOUND,
) -> Truth:
    """Read the true labels of a release.

    Parameters
    ----------
    source : path, table, Series or array
        A bare array or Series is in the release's row order.
    rows : int
        The release's number of rows n.
    label : str
        The name of the released label.
    truth_column : str or None
        The column of the truth that holds the labels; default: the one called as the released
        label, else ``"label"``, else the only one that is not the id.
    id_column : str or None
        The column on which to join; None: the rows are in the same order.
    identifiers : pyarrow.ChunkedArray of n values, or None
        The release's ids.
    numeric : bool
        Whether the mechanism is one on numbers.
    files : FileOptions
        How text files are written.

    Raises
    ------
    InputError
        If the column is not clear, the number of rows differs, or ids are missing, unknown or not
        distinct.
    """
    table, bare = open_truth(source, files)
    join = identifiers is not None and not bare
    name = table.names[0] if bare else _column(table.names, label, truth_column, id_column, join)
    wanted = [name, id_column] if join and id_column is not None else [name]
    if rows >= LARGE and not join and not numeric and isinstance(table, FileBatches):
        columns = list(coded_columns(table, wanted).values())
    else:
        columns = [column for _, column in table.columns(wanted, as_text=wanted)]
    values, unused = columns[0], 0
    if join:
        order = matching_rows(identifiers, columns[1])
        values, unused = values.take(order), len(values) - rows
    elif len(values) != rows:
        raise InputError(
            f"The true labels must have as many rows as the release: {len(values)} against {rows}."
        )
    return Truth(
        *(true_labels(values, numeric=numeric, from_text=table.text), None if bare else name),
        unused,
        table.remark,
    )


def true_labels(
    column: pa.ChunkedArray, *, numeric: bool, from_text: bool
) -> LabelColumn | FloatArray:
    """Read a column of true labels, as numbers for a mechanism on numbers."""
    if numeric:
        return read_numbers(column, "true")
    return read_labels(column, "true", from_text=from_text)


def open_truth(source: Any, files: FileOptions) -> tuple[TableSource, bool]:
    """Open a truth; a bare array or Series becomes a table of one column."""
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return MemoryTable(pa.table({DEFAULT_LABEL: source})), True
    one_dimensional = getattr(source, "ndim", None) == 1 or isinstance(source, list | tuple)
    if not one_dimensional:
        if isinstance(source, str | os.PathLike) and is_svmlight(os.fspath(source)):
            return open_svmlight(os.fspath(source)), False
        return open_table(source, files), False
    import pandas as pd

    return MemoryTable(pd.DataFrame({DEFAULT_LABEL: _without_index(source)})), True


def _without_index(source: Any) -> Any:
    return source.array if hasattr(source, "index") and hasattr(source, "array") else source


def _column(
    names: Sequence[str],
    label: str,
    truth_column: str | None,
    id_column: str | None,
    join: bool,
) -> str:
    if join and id_column not in names:
        raise InputError(f"The truth must have the id column {quoted(str(id_column))} as well.")
    if truth_column is not None:
        if truth_column not in names:
            raise missing_column(truth_column, "true label", names)
        return truth_column
    found = named_truth(names, label)
    if found is not None or DEFAULT_LABEL in names:
        return found or DEFAULT_LABEL
    others = [name for name in names if name != id_column]
    if len(others) == 1:
        return others[0]
    raise InputError(
        f"The truth has {len(others)} columns and none is called as the released label; name the "
        f"column of the true labels (--truth-column)."
    )


def named_truth(names: Sequence[str], label: str) -> str | None:
    """Return the column called as the released label, or as sdcMicro called it before; or None."""
    called = (label, label.removesuffix(RELEASED))
    return next((name for name in called if name in names), None)


def matching_rows(
    identifiers: Any, other_ids: pa.ChunkedArray, other: str = "truth"
) -> pa.ChunkedArray:
    """Return for each row of the release the row of another table with the same id."""
    ours, theirs = comparable_ids(identifiers, "release"), comparable_ids(other_ids, other)
    for ids, where in ((ours, "release"), (theirs, other)):
        repeated = len(ids) - pc.count_distinct(ids).as_py()
        if repeated:
            raise InputError(f"Ids must be distinct; {repeated:,} in the {where} are repeated.")
    order = pc.index_in(ours, value_set=theirs.combine_chunks())
    if order.null_count:
        raise InputError(
            f"Every id of the release must be in the {other}; {order.null_count:,} of "
            f"{len(ours)} are not."
        )
    return order


def comparable_ids(ids: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Return ids as text, so that 7 in one file matches ``7`` in the other (but not ``07``)."""
    ids = decoded(ids)
    binary = is_any(ids.type, "fixed_size_binary", "binary")
    plain = ids.cast(pa.large_binary()) if binary else _text(ids, where)
    if plain.null_count:
        raise InputError(
            f"Every row must have an id; {plain.null_count:,} of the {where} have none."
        )
    return plain


def _text(ids: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    try:
        if pa.types.is_floating(ids.type):
            ids = ids.cast(pa.int64())
        return ids.cast(pa.large_string())
    except pa.ArrowException:
        raise InputError(f"The ids of the {where} must be whole numbers or text.") from None
