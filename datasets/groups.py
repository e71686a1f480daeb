"""Rows that belong to something: a household, a bag, a stratum with its channel, a slice."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.arrays import IndexArray, IntArray
from ldpaudit.datasets.domains import (
    BagReading,
    Domains,
    EncodedLabels,
    read_numbers,
    true_codes,
)
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import (
    TableSource,
    check_complete,
    comparable_values,
    decoded,
    is_any,
)
from ldpaudit.datasets.labels import LabelColumn, forms, positions, read_labels
from ldpaudit.datasets.names import called, missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Bags, Declaration, FloatArray, Slices, Strata

# Slices of fewer rows are merged.
FEWEST_ROWS: Final = 100
# The most of one column; the smallest are merged into the last.
MOST_SLICES: Final = 12
_BINNED_FROM, _BINS = 10, 4
_REST: Final = "all others"
# How far from a whole number a sum may be that was written as a proportion.
_ROUNDING: Final = 0.05
_SAME: Final = 1e-6
_OUTPUTS: Final = ("at most half of the bag", "more than half of the bag")


def read_groups(
    columns: Mapping[str, pa.ChunkedArray], group: str | None, identifier: str | None
) -> IndexArray | None:
    """Return codes of rows that belong together, int64 (n,); None where each is on its own."""
    # A row without a value belongs to no other. Where no group is asked for, rows with one id
    # belong together.
    name = identifier if group is None else group
    if name is None:
        return None
    column = comparable_values(columns[name])
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


def read_bags(
    reading: BagReading, label: pa.ChunkedArray, bag: pa.ChunkedArray, truth: LabelColumn | None
) -> tuple[EncodedLabels, Bags]:
    """Read a release of bags: ``label`` holds the same proportion or sum in every row of a bag."""
    # The released codes say whether more than half of the bag has the second class.
    bag = decoded(bag)
    check_complete(bag.null_count, len(bag), "a bag")
    encoded = bag.dictionary_encode().combine_chunks()
    members = encoded.indices.to_numpy().astype(np.int64)
    sizes = np.bincount(members, minlength=len(encoded.dictionary))
    single = int((sizes < 2).sum())
    if single:
        raise InputError(
            f"A bag must have at least 2 rows, since the sum of one label is the label; {single} "
            f"of {len(sizes)} bags have one."
        )
    values = read_numbers(label, "released")
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, members, values)
    np.maximum.at(high, members, values)
    differ = int((high - low > _SAME * np.maximum(np.abs(high), 1.0)).sum())
    if differ:
        raise InputError(
            f"Every row of a bag must hold the same released value; in {differ} of {len(sizes)} "
            "bags they differ."
        )
    sums: FloatArray = low * sizes if reading.statistic == "proportion" else low
    if reading.sums_are_whole:
        rounded, words = np.rint(sums), "a whole number of rows"
        off = np.abs(sums - rounded) > _ROUNDING
        if reading.sums_fit_the_bag:
            off |= (rounded < 0) | (rounded > sizes)
            words += " between 0 and the bag's size"
        if off.any():
            raise InputError(
                f"Every bag's released value, a proportion times the bag's size, must be {words}, "
                f"as declared; in {int(off.sum())} of {len(sums)} bags it is not."
            )
        sums = rounded
    released = (sums > sizes / 2).astype(np.int32)[members]
    codes = true_codes(truth, reading.classes)
    return EncodedLabels(Domains(reading.classes, _OUTPUTS), released, codes), Bags(members, sums)


def read_strata(
    table: TableSource,
    by: str | None,
    claim: Declaration | None,
    private: Collection[str | None],
    rows: IndexArray | None = None,
) -> tuple[Strata | None, tuple[str, ...]]:
    """Return each row's stratum as the claim numbers them, and what to know about them.

    ``by``: the public column that holds the strata, none of the ``private`` ones; ``rows``: those
    to read, None for all. The claim's ``strata`` name their values, in order; a number matches
    the text that writes it.
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
            raise missing_column(name, "to slice by (--slice)", table.names)
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
    return Slices(column, tuple(labels), lookup[codes], rest > 0)


def joint_slices(slices: Sequence[Slices], rows: IndexArray) -> IntArray | None:
    """Return one code for each row, distinct for each combination of slices; int32 (rows,)."""
    if not slices:
        return None
    joint = np.zeros(len(rows), dtype=np.int32)
    for column in slices:
        joint = joint * len(column) + column.codes[rows]
    return joint
