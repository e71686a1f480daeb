"""True labels of the released rows: from the release, or from a table with the same rows or ids."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.domains import read_numbers
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.registered import open_sparse
from ldpaudit.datasets.formats.tables import (
    BYTES,
    TEXTS,
    MemoryTable,
    TableSource,
    bare_column,
    comparable_values,
    is_any,
)
from ldpaudit.datasets.labels import RELEASED, LabelColumn, read_labels
from ldpaudit.datasets.names import DEFAULT_LABEL, missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray


class UnknownIdError(InputError):
    """Ids of the release that another table does not have."""


@dataclass(frozen=True)
class Truth:
    """The true labels in the release's row order.

    ``labels`` are numbers, float64 (n,), for a mechanism on numbers; ``column`` is the name of
    theirs, None for a bare array; ``unused`` counts the rows that belong to no row of the
    release; ``remark`` says how the file was read, where that is not as usual. ``table`` is where
    they were read, with the columns in ``as_text`` as texts; None for a column of the release.
    ``order``, int64 (n,): the row of the table that each row is; None: the same row. ``sampled``:
    whether only these rows of the release are read.
    """

    labels: LabelColumn | FloatArray
    column: str | None
    unused: int = 0
    remark: str = ""
    table: TableSource | None = None
    order: npt.NDArray[np.int64] | None = None
    as_text: tuple[str, ...] = ()
    sampled: bool = False


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """The rows of a release that true labels are read for."""

    count: int
    label: str
    """The column of the released labels."""
    id_column: str | None = None
    """The column of the ids, None where rows are joined by their order."""
    identifiers: pa.ChunkedArray | None = None
    """The ids of the rows, where there are some."""
    looked_at: npt.NDArray[np.int64] | None = None
    """The places of the rows that are read of the release, None for all."""


def read_truth(
    source: Any,
    release: ReleasedRows,
    *,
    truth_column: str | None = None,
    numeric: bool = False,
    files: FileOptions = AS_FOUND,
) -> Truth:
    """Read the true labels of a release.

    A bare array or Series is in the release's row order, as is a table without the release's ids.
    Labels are in ``truth_column``; default: the column called as that of the released labels, else
    ``"label"``, else the only one that is not the id. ``numeric``: whether the mechanism is one on
    numbers.
    """
    id_column, looked_at, rows = release.id_column, release.looked_at, release.count
    table, bare = open_truth(source, files)
    identifiers = None if bare else release.identifiers
    join = identifiers is not None
    if bare:
        name = table.names[0]
    else:
        name = _column(table.names, release.label, truth_column, id_column, join)
    wanted = [name, id_column] if join and id_column is not None else [name]
    values, *others = [column for _, column in table.columns(wanted, as_text=wanted)]
    unused, order = 0, None
    if identifiers is not None:
        order = matching_rows(identifiers, others[0])
        values, unused = values.take(order), len(values) - rows
    elif len(values) != rows:
        raise InputError(
            f"The true labels must have as many rows as the release: {len(values)} against {rows}."
        )
    elif looked_at is not None:
        order = pa.array(looked_at)
        values = values.take(order)
    read = Truth(
        true_labels(values, numeric=numeric, from_text=table.text),
        name,
        unused,
        table.remark,
        table,
        None if order is None else order.to_numpy().astype(np.int64),
        tuple(wanted[1:]),
        sampled=looked_at is not None,
    )
    return replace(read, column=None, table=None) if bare else read


def true_labels(
    column: pa.ChunkedArray, *, numeric: bool, from_text: bool
) -> LabelColumn | FloatArray:
    """Read a column of true labels, as numbers for a mechanism on numbers."""
    if numeric:
        return read_numbers(column, "true")
    return read_labels(column, "true", from_text=from_text)


def open_truth(source: Any, files: FileOptions) -> tuple[TableSource, bool]:
    """Open a truth; a bare array or Series becomes a table of one column."""
    if not isinstance(source, str | os.PathLike | TableSource):
        column = bare_column(source)
        if column is not None:
            return MemoryTable(pa.table({DEFAULT_LABEL: column})), True
    sparse = open_sparse(source) if isinstance(source, str | os.PathLike) else None
    return (open_table(source, files) if sparse is None else sparse), False


def _column(
    names: Sequence[str],
    label: str,
    truth_column: str | None,
    id_column: str | None,
    join: bool,
) -> str:
    if join and id_column not in names:
        raise InputError(
            f"The truth must have the id column {quoted(str(id_column))} as well; privatize --id "
            "keeps it in --secret. If its rows have the release's order, leave out --id."
        )
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
    """Return for each row of the release the row of another table with the same id (InputError)."""
    ours, theirs = comparable_ids(identifiers, "release"), comparable_ids(other_ids, other)
    for ids, where in ((ours, "release"), (theirs, other)):
        repeated = len(ids) - pc.count_distinct(ids).as_py()
        if repeated:
            raise InputError(
                f"Ids must be distinct; {repeated:,} in the {where} are repeated. Where a person "
                "has several rows, give both tables a column that numbers the rows, and join them "
                "on that one."
            )
    if ours.type != theirs.type:
        raise UnknownIdError(
            f"The ids of the release and of the {other} must be written alike: those of one table "
            "are bytes, those of the other text or numbers."
        )
    order = pc.index_in(ours, value_set=theirs.combine_chunks())
    if order.null_count:
        missing = ours.filter(order.is_null())
        raise UnknownIdError(
            f"Every id of the release must be in the {other}; {order.null_count:,} of "
            f"{len(ours):,} are not.{_would_match(missing, theirs, other)}"
        )
    return order


# How ids of two tables may differ, and what removes that from a column of text.
_SPELLINGS: Final = (
    ("without zeros in front", lambda ids: pc.replace_substring_regex(ids, "^0+([0-9])", r"\1")),
    ("without spaces around them", pc.utf8_trim_whitespace),
    ("if upper and lower case were the same", pc.utf8_lower),
    ("without hyphens", lambda ids: pc.replace_substring(ids, "-", "")),
    ("without '.0' at the end", lambda ids: pc.replace_substring_regex(ids, r"\.0+$", "")),
    ("without quotes around them", lambda ids: pc.utf8_trim(ids, characters="'\"")),
)


def _would_match(missing: pa.ChunkedArray, known: pa.ChunkedArray, other: str) -> str:
    """Return a sentence about what would make ids match that are missing; empty if nothing does."""
    if not is_any(known.type, *TEXTS):
        return ""

    def found(change: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> int:
        there = pc.is_in(change(missing), value_set=change(known).combine_chunks())
        return int(pc.sum(there).as_py() or 0)

    matching = [(found(change), words) for words, change in _SPELLINGS]
    most, words = max(matching, key=lambda one: one[0])
    if not most:
        kinds = [
            pc.all(pc.match_substring_regex(ids, r"^[0-9]+$")).as_py() for ids in (missing, known)
        ]
        if kinds[0] != kinds[1]:
            numbered = "release" if kinds[0] else other
            return (
                f" Those of the {numbered} are numbers, the others are not: is it the same column?"
            )
        return ""
    which = "All" if most == len(missing) else f"{most:,}"
    return f" {which} of these would match {words}: write the ids of both tables alike."


def comparable_ids(ids: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Return ids as text, so that 7 in one file matches ``7`` in the other (but not ``07``).

    A whole number is itself, however it is written: 7.0, as pandas writes it after a merge, is 7.
    """
    ids = comparable_values(ids)
    try:
        if is_any(ids.type, "fixed_size_binary", *BYTES):
            ids = ids.cast(pa.large_binary())
        else:
            whole = ids.cast(pa.int64()) if pa.types.is_floating(ids.type) else ids
            ids = whole.cast(pa.large_string())
            if pc.all(pc.match_substring_regex(ids, r"^[+-]?(0|[1-9][0-9]*)\.0+$")).as_py():
                ids = pc.replace_substring_regex(ids, r"\.0+$", "")
    except pa.ArrowException:
        raise InputError(f"The ids of the {where} must be whole numbers or text.") from None
    if ids.null_count:
        raise InputError(f"Every row must have an id; {ids.null_count:,} of the {where} have none.")
    return ids
