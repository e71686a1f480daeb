"""Rows that belong to something: a household, a stratum with a channel of its own, a slice."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.arrays import IndexArray, IntArray
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.tables import TableSource, check_complete, decoded, is_any
from ldpaudit.datasets.labels import forms, positions, read_labels
from ldpaudit.datasets.names import called, missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Declaration, Slices, Strata

# Slices of fewer rows are merged.
FEWEST_ROWS: Final = 100
# The most of one column; the smallest are merged into the last.
MOST_SLICES: Final = 12
_BINNED_FROM, _BINS = 10, 4
_REST: Final = "all others"


def read_groups(
    columns: Mapping[str, pa.ChunkedArray], group: str | None, identifier: str | None
) -> IndexArray | None:
    """Return codes of rows that belong together, int64 (n,); None where each is on its own.

    A row without a value belongs to no other. Where no group is asked for, rows with one id belong
    together.
    """
    name = identifier if group is None else group
    if name is None:
        return None
    column = decoded(columns[name])
    if is_any(column.type, "floating"):  # NaN is missing, too.
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), None, column)
    encoded = column.dictionary_encode().combine_chunks()
    codes: IndexArray = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    missing = codes < 0
    codes[missing] = len(encoded.dictionary) + np.arange(int(missing.sum()))
    largest = int(np.bincount(codes).max())
    if group is not None and largest == len(codes) > 1:
        raise InputError("The group (--group) must not be the same in all rows.")
    if group is not None and 2 * largest > len(codes):
        raise InputError(
            "A group (--group) must not hold more than half of the rows: the "
            f"largest holds {largest / len(codes):.0%}."
        )
    return None if largest == 1 or 2 * largest > len(codes) else codes


def read_strata(
    table: TableSource,
    by: str | None,
    claim: Declaration | None,
    private: Collection[str | None],
    rows: IndexArray | None = None,
) -> tuple[Strata | None, tuple[str, ...]]:
    """Return each row's stratum as the claim numbers them, and what to know about them.

    ``by``: the public column that holds the strata, none of the ``private`` ones; ``rows``: those
    to read, None for all. The claim's ``strata`` name their values, in order; a number matches the
    text that writes it.
    """
    if by is None:
        return None, ()
    if by not in table.names:
        raise missing_column(by, "strata", table.names, typed=False)
    which = called(by, table.names)
    if by in private:
        raise InputError(f"The strata must be given by a public column, and {which} is private.")
    stated: Any = None if claim is None else claim.parameters.get("strata")
    if not isinstance(stated, list | tuple) or not stated:
        raise InputError("The mechanism by stratum must list its 'strata', each with its value.")
    declared: tuple[Any, ...] = tuple(
        one.get("value") if isinstance(one, Mapping) else None for one in stated
    )
    if not all(isinstance(value, str | int | float) for value in declared):
        raise InputError("Each stratum must state its 'value': a text, a number or a boolean.")
    forms(declared, "values of the strata")
    column = next(table.columns((by,), (by,), rows))[1]
    check_complete(column.null_count, len(column), f"a value of {which}, its stratum")
    found = read_labels(column, "stratum's", from_text=table.text)
    codes = positions(found.values, declared)[found.codes]
    outside = int((codes < 0).sum())
    if outside:
        raise InputError(
            f"Every row's value of {which} must be that of a declared stratum; {outside} of "
            f"{len(codes)} rows hold another value."
        )
    empty = len(declared) - len(np.unique(codes))
    said = f"{empty} of {len(declared)} declared strata have no row: nothing is measured there."
    return Strata(codes, len(declared)), ((said,) if empty else ())


def read_slices(
    source: Any,
    columns: Collection[str],
    files: FileOptions = AS_FOUND,
    rows: IndexArray | None = None,
) -> tuple[Slices, ...]:
    """Read columns of a release to group its rows by, such as regions or age groups.

    ``rows``: those that were read of the release; None for all.

    Numbers of more than ten values are cut at their quartiles. Slices of fewer than 100 rows, and
    all but the eleven largest, are merged.
    """
    if not columns:
        return ()
    table, found = open_table(source, files), []
    for name in columns:
        if name not in table.names:
            raise InputError(f"There is no column {quoted(name)} to slice by (--slice).")
    for name, column in table.columns(list(dict.fromkeys(columns))):
        some = column if rows is None else column.take(pa.array(rows))
        try:
            values = _binned(some.to_pandas())
            codes, names = pd.factorize(values.astype(str), use_na_sentinel=False)
        except (TypeError, ValueError):
            raise InputError(f"The column {quoted(name)} holds no values to slice by.") from None
        found.append(merged(name, codes.astype(np.int32), [str(value) for value in names]))
    return tuple(found)


def _binned(values: pd.Series) -> pd.Series:
    if values.dtype == object:
        numbers = pd.to_numeric(values, errors="coerce")
        if numbers.isna().sum() > values.isna().sum():
            return values
        values = numbers
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not numeric or values.nunique() <= _BINNED_FROM:
        return values
    return pd.Series(pd.qcut(values, _BINS, duplicates="drop"))


def merged(column: str, codes: IntArray, names: Sequence[str]) -> Slices:
    """Return slices with the small ones merged, the largest first; at least two (InputError)."""
    counts = np.bincount(codes, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    large = [int(i) for i in order[: MOST_SLICES - 1] if counts[i] >= FEWEST_ROWS]
    rest = len(codes) - int(counts[large].sum())
    # The rest needs as many rows as any slice: it can be computed by subtraction.
    while large and 0 < rest < FEWEST_ROWS:
        rest += int(counts[large.pop()])
    if len(large) + (rest > 0) < 2:
        raise InputError(
            f"The column {quoted(column)} must have at least two slices of {FEWEST_ROWS} rows."
        )
    lookup = np.full(len(names), len(large), dtype=np.int32)
    lookup[large] = np.arange(len(large), dtype=np.int32)
    labels = [names[i] for i in large] + ([_REST] if rest else [])
    return Slices(column, tuple(labels), lookup[codes])


def joint_slices(slices: Sequence[Slices], rows: IndexArray) -> IntArray | None:
    """Return one code for each row, distinct for each combination of slices; int32 (rows,)."""
    if not slices:
        return None
    joint = np.zeros(len(rows), dtype=np.int32)
    for column in slices:
        joint = joint * len(column) + column.codes[rows]
    return joint
