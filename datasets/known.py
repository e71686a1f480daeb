"""Which columns were there before the noise: the truth holds them, or somebody says so."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.companions import joined_values
from ldpaudit.datasets.features import is_categorical
from ldpaudit.datasets.formats.tables import LISTS, TableSource, decoded, is_any, stored
from ldpaudit.datasets.names import ColumnError, Roles, missing_column, quoted
from ldpaudit.datasets.truth import Truth
from ldpaudit.errors import InputError
from ldpaudit.release.features import ColumnSurvey

EVERY: Final = "*"
"""Stands for all columns."""
_BITS: Final = {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}


@dataclass
class KnownColumns:
    """The columns of a release that are known to be from before the noise."""

    named: frozenset[str]
    """By an option or a policy."""
    declared: frozenset[str]
    """By the file."""
    truth: Truth | None = None
    """The table of true labels, None without one."""
    equal: dict[str, bool | None] = field(default_factory=dict)
    """For each column that it holds, too, whether all values are equal; None where they cannot be
    compared."""

    def compared(
        self,
        cells: Iterable[tuple[str, pa.ChunkedArray]],
        features: Sequence[str],
        keys: Mapping[str, pa.ChunkedArray],
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the feature columns as they are; compare them, and the keys, with the truth's."""
        theirs = iter(()) if self.truth is None else _columns_of(self.truth, (*keys, *features))
        waiting = next(theirs, None)
        for name, column in keys.items():
            if waiting is not None and waiting[0] == name:
                self.equal[name] = same_values(column, waiting[1])
                waiting = next(theirs, None)
        for name, column in cells:
            if waiting is not None and waiting[0] == name:
                self.equal[name] = same_values(column, waiting[1])
                waiting = None
                waiting = next(theirs, None)
            yield name, column
            del column  # Else two are in memory while the next one is read.

    def of(self, column: ColumnSurvey) -> ColumnSurvey:
        """Return what was seen of a column, with how it is known to be from before the noise."""
        # What a file declares of a column does not count against a truth with other values.
        equal = self.equal.get(column.name)
        if equal:
            return replace(column, before="truth")
        if column.name in self.named:
            return replace(column, before="named")
        declared = column.name in self.declared and equal is None
        return replace(column, before="declared") if declared else column


def known_columns(
    before: Collection[str],
    declared: Collection[str],
    table: TableSource,
    roles: Roles,
    private: Collection[str],
    truth: Truth | None,
) -> KnownColumns:
    """Return what is said of the columns of a release (InputError where one is no feature).

    ``private``: columns that are features here, and were made by noise themselves.
    """
    theirs = None if truth is None else truth.table
    if theirs is not None:
        theirs.read_like(table)
    if isinstance(before, str):
        raise InputError("The 'before' parameter must be a list of column names, not one text.")
    public = {*roles.features, *roles.keys} - {*private}
    for name in before:
        if name != EVERY and name not in table.names:
            raise missing_column(name, "to take as before the noise", table.names)
        if name != EVERY and name not in public:
            raise InputError(
                f"The column {quoted(name)} is private or no feature; --before names others."
            )
    named = public if EVERY in before else {*before}
    return KnownColumns(frozenset(named), frozenset({*declared} & public), truth)


def _columns_of(truth: Truth, names: Sequence[str]) -> Iterator[tuple[str, pa.ChunkedArray | None]]:
    """Yield those of the named columns that the truth holds, in the release's row order."""
    # None stands for one that cannot be read.
    table, order = truth.table, truth.order
    if table is None:
        return
    held, rows, place = {*table.names}, None, order
    if truth.sampled and order is not None:  # No other rows are kept in memory.
        rows, back = np.unique(order, return_inverse=True)
        place = back.reshape(-1)
    in_order = place is None or np.array_equal(place, np.arange(len(place)))
    shared = [name for name in names if name in held]
    for name, column in _readable(table, shared, truth.as_text, rows):
        taken = column
        if column is not None and place is not None:
            try:
                taken = column.slice(0, len(place)) if in_order else column.take(pa.array(place))
            except pa.ArrowException:
                taken = None
        yield name, taken


def _readable(
    table: TableSource,
    names: Sequence[str],
    as_text: Collection[str],
    rows: npt.NDArray[np.int64] | None,
) -> Iterator[tuple[str, pa.ChunkedArray | None]]:
    """Yield columns, None for each that cannot be read: it is looked for by halving."""
    done = 0
    try:
        for name, column in table.columns(names, [n for n in names if n in as_text], rows):
            done += 1
            yield name, column
    except (InputError, pa.ArrowException):
        rest = names[done:]
        half = len(rest) // 2
        if not half:
            yield from ((name, None) for name in rest)
            return
        yield from _readable(table, rest[:half], as_text, rows)
        yield from _readable(table, rest[half:], as_text, rows)


def same_values(ours: pa.ChunkedArray, theirs: pa.ChunkedArray | None) -> bool | None:
    """Return whether two columns hold the same values; None where they cannot be compared."""
    # NaN is a missing value. Numbers are equal as float32 where all of one column are such.
    if theirs is None:
        return None
    try:
        ours, theirs = stored(ours), stored(theirs)
        if len(ours) != len(theirs):
            return None
        if ours.type == theirs.type and _bits(ours).equals(_bits(theirs)):
            return True
        if is_any(ours.type, *LISTS) and is_any(theirs.type, *LISTS):
            lengths = [pc.list_value_length(one).cast(pa.int64()) for one in (ours, theirs)]
            entries = map(pc.list_flatten, (ours, theirs))
            return same_values(*entries) if lengths[0].equals(lengths[1]) else False
        ours, theirs = decoded(ours), decoded(theirs)
        alike = is_categorical(ours.type) == is_categorical(theirs.type)
        both = joined_values([ours, theirs])
        ours, theirs = both.slice(0, len(ours)), both.slice(len(ours))
        same = _same_numbers if pa.types.is_floating(both.type) else pa.ChunkedArray.equals
        return bool(same(ours, theirs)) or (False if alike else None)
    except (ColumnError, pa.ArrowException):
        return None


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of floats as whole numbers, by which NaN equals NaN; others as they are."""
    if not pa.types.is_floating(column.type):
        return column
    kind = _BITS[column.type.bit_width // 8]
    return pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)


def _same_numbers(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> bool:
    """Return whether no row has another number, sign of zero or kind of gap than in the truth."""
    (x, gaps), (y, others) = map(_numbers, (ours, theirs))
    # Where gaps are of two kinds, which of them is a value, too.
    if ours.null_count and gaps.any() and not np.array_equal(gaps, others):
        return False
    missing = np.isnan(x)
    if not np.array_equal(missing, np.isnan(y)):
        return False
    x, y = x[~missing], y[~missing]
    if not np.array_equal(x, y):
        with np.errstate(over="ignore"):
            short, other = x.astype(np.float32), y.astype(np.float32)
        if not (np.array_equal(short, x) or np.array_equal(other, y)):
            return False
        if not np.array_equal(short, other):
            return False
    return bool(np.array_equal(np.signbit(x), np.signbit(y)))


def _numbers(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return a column as float64 (n,), NaN where missing, and which values are NaN themselves."""
    values = np.asarray(column.cast(pa.float64()).to_numpy())
    return values, np.isnan(values) & np.asarray(column.is_valid().to_numpy())
