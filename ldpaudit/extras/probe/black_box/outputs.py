"""Outputs of any randomizer as a table of entries, checked and flattened."""

# A list of outputs is first read as a whole: one None among numbers makes objects of all, one
# output of another length makes sets of all. For the test the form is fixed beforehand, so that
# each output is read on its own: in it a guess must depend on its own output alone, or candidates
# of one call would not be independent.

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.doors import InputError, refuse

# Outputs of shape (n, d): numbers, text or, of type object, hashable entries.
OutputTable = npt.NDArray[Any]

NUMERIC = "biuf"
# Replaces NaN, so that NaNs are equal.
_MISSING = float(np.finfo(np.float64).max)


class Ragged(frozenset[Any]):
    """An output read as the set of its entries, since outputs differ in length."""


def as_outputs(returned: Any, n: int) -> OutputTable:
    """Read what a randomizer returned: n outputs, one a row; one entry where it is a value or set.

    An output is a number, text or another hashable value, an array or a tuple of these, or a set;
    outputs of unequal length are read as sets. InputError where it is something else.
    """
    if not isinstance(returned, np.ndarray) and hasattr(returned, "__array__"):
        returned = np.asarray(returned)
    array = isinstance(returned, np.ndarray)
    if not array and (isinstance(returned, str | bytes) or not isinstance(returned, Sequence)):
        kind = type(returned).__name__
        raise InputError(f"The function must return an array or a list of outputs; got {kind}.")
    refuse(
        array and returned.ndim == 0,
        "The function must return an array of outputs; got a single value.",
    )
    refuse(
        len(returned) != n,
        f"The function must return {n} outputs, as requested. Got {len(returned)}.",
    )
    return _from_array(returned) if array else _from_rows(_rows(returned))


def _from_array(array: npt.NDArray[Any]) -> OutputTable:
    if array.dtype.names is not None:
        return joined_columns([_from_array(array[name]) for name in array.dtype.names])
    if array.dtype.kind == "O":
        return _from_rows(_rows(array))
    if array.dtype.kind in "Mm":
        array = array.view(np.int64)
    refuse(
        array.dtype.kind not in NUMERIC + "US",
        f"The outputs must be numbers or text; got {array.dtype}.",
    )
    refuse(array.size == 0 and len(array), "Every output must have at least one entry; got none.")
    table = np.ascontiguousarray(array.reshape(len(array), -1))
    if table.dtype.kind == "f":
        table = np.where(np.isnan(table), min(_MISSING, np.finfo(table.dtype).max), table)
    return table


def _rows(returned: Any) -> list[tuple[Any, ...]]:
    """Return the entries of each output, read on its own."""
    return [
        _entries(one) for one in (returned.tolist() if hasattr(returned, "tolist") else returned)
    ]


def _entries(output: Any) -> tuple[Any, ...]:
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, AbstractSet):
        return (frozenset(entry for item in output for entry in _entries(item)),)
    if isinstance(output, list | tuple):
        return tuple(entry for part in output for entry in _entries(part))
    if isinstance(output, float) and output != output:
        return (_MISSING,)
    if not isinstance(output, Hashable):
        kind = type(output).__name__
        raise InputError(f"An output must be hashable, an array or a tuple; got {kind}.")
    # Outputs are compared where a user's own type may not be known.
    plain = isinstance(output, bool | int | float | str | bytes | None)
    return (output if plain else repr(output),)


def _from_rows(rows: Sequence[tuple[Any, ...]]) -> OutputTable:
    widths = {len(row) for row in rows}
    if len(widths) != 1 or widths == {0}:
        return _ragged(rows)  # Which values occur is all that can be compared.
    if all(isinstance(entry, bool | int | float) for row in rows for entry in row):
        array = np.array(rows)
        # As float64, different integers would become equal.
        whole = [entry for row in rows for entry in row if isinstance(entry, int)]
        rounded = array.dtype.kind == "f" and any(int(float(entry)) != entry for entry in whole)
        if array.dtype.kind != "O" and not rounded:
            return array
    return _objects(rows, widths.pop())


def _objects(rows: Sequence[Sequence[Any]], width: int) -> OutputTable:
    table: OutputTable = np.empty((len(rows), width), dtype=object)
    for place, row in enumerate(rows):
        table[place] = row
    return table


def _ragged(rows: Iterable[Iterable[Any]]) -> OutputTable:
    return _objects([(Ragged(row),) for row in rows], 1)


def _is_ragged(table: OutputTable) -> bool:
    return table.dtype.kind == "O" and table.shape[1] == 1 and isinstance(table[0, 0], Ragged)


def _alike(tables: Sequence[OutputTable]) -> list[OutputTable]:
    """Return tables that can be joined: numbers, texts of one kind, or objects."""
    kinds = {"n" if table.dtype.kind in NUMERIC else table.dtype.kind for table in tables}
    return [table.astype(object) if len(kinds) > 1 else table for table in tables]


def joined_columns(tables: Sequence[OutputTable]) -> OutputTable:
    """Join tables of equally many rows, side by side; of mixed kinds as objects."""
    return np.concatenate(_alike(tables), axis=1)


def joined(tables: Sequence[OutputTable]) -> OutputTable:
    """Join tables of one randomizer, row under row; as sets where one of them holds sets."""
    if any(map(_is_ragged, tables)):
        tables = [one if _is_ragged(one) else _ragged(one.tolist()) for one in tables]
    if len(widths := {table.shape[1] for table in tables}) > 1:
        raise _uneven(min(widths), max(widths))
    tables = _alike(tables)
    # Integers beside floats would be floats, and some of them no longer differ.
    long = [t for t in tables if t.dtype.kind in "iu" and t.dtype.itemsize == 8 and t.size]
    largest = max((max(-int(t.min()), int(t.max())) for t in long), default=0)
    if largest > 1 << 53 and np.result_type(*tables).kind == "f":
        tables = [table.astype(object) for table in tables]
    return np.concatenate(tables)


def _uneven(one: int, other: int) -> InputError:
    return InputError(
        f"Every output must have the same number of entries; got {one} in one call and {other} in "
        "another."
    )


@dataclass(frozen=True)
class OutputForm:
    """The form of the outputs on which events were chosen.

    ``width`` entries of a numeric ``dtype`` or objects; ``ragged``: read as sets, since some
    differed in length.
    """

    width: int
    dtype: np.dtype[Any]
    ragged: bool

    @classmethod
    def of(cls, table: OutputTable) -> "OutputForm":
        """Return the form of a table of outputs."""
        dtype = table.dtype if table.dtype.kind in NUMERIC else np.dtype(object)
        return cls(table.shape[1], dtype, _is_ragged(table))

    def read(self, returned: Any, n: int) -> OutputTable:
        """Read n outputs in this form; those that do not have it are left out (m ≤ n rows)."""
        table = as_outputs(returned, n)
        same = table.shape[1] == self.width and _is_ragged(table) == self.ragged
        if same and table.dtype == self.dtype:
            return table
        if same and self.dtype.kind != "O" and table.dtype.kind in NUMERIC:
            with np.errstate(invalid="ignore", over="ignore"):
                cast = table.astype(self.dtype)
            return np.asarray(cast[(cast == table).all(axis=1)])
        if not same and isinstance(returned, np.ndarray) and returned.dtype.kind != "O":
            raise _uneven(self.width, table.shape[1])
        rows = _rows(returned)
        if self.ragged:
            return _ragged(rows)
        rows = [row for row in rows if len(row) == self.width]
        if self.dtype.kind == "O":
            return _objects(rows, self.width)
        held = [row for row in rows if all(map(self._holds, row))]
        return np.array(held, dtype=self.dtype).reshape(-1, self.width)

    def _holds(self, entry: Any) -> bool:
        """Return whether an entry is a number that this form's type can hold."""
        try:
            return isinstance(entry, int | float) and bool(self.dtype.type(entry) == entry)
        except (OverflowError, ValueError):
            return False
