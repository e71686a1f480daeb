"""Outputs of any randomizer as a table of entries, checked and flattened.

A list of outputs is first read as a whole: one None among numbers makes objects of all, one output
of another length makes sets of all. For the test the form is fixed beforehand, so that each output
is read on its own: in it a guess must depend on its own output alone, or candidates of one call
would not be independent.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError

OutputTable = npt.NDArray[Any]
"""Outputs of shape (n, d): numbers, text or, of type object, hashable entries."""

NUMERIC = "biuf"
_SCALARS = (bool, int, float, np.generic)
_PLAIN = (bool, int, float, str, bytes, type(None))
_MISSING = float(np.finfo(np.float64).max)
"""Replaces NaN, so that NaNs are equal."""


class Ragged(frozenset[Any]):
    """An output read as the set of its entries, since outputs differ in length."""


def as_outputs(returned: Any, n: int) -> OutputTable:
    """Read what a randomizer returned.

    Parameters
    ----------
    returned : array or sequence of n outputs
        An output is a number, text or another hashable value, an array or a tuple of these, or a
        set. Outputs of unequal length are read as sets.
    n : int
        How many outputs were requested.

    Returns
    -------
    array of shape (n, d)
        One row per output; d is 1 where an output is one value or a set.

    Raises
    ------
    InputError
        If it is something else, or not n of them.
    """
    if not isinstance(returned, np.ndarray) and hasattr(returned, "__array__"):
        returned = np.asarray(returned)
    if isinstance(returned, np.ndarray):
        return _from_array(returned, n)
    if isinstance(returned, str | bytes) or not isinstance(returned, Sequence):
        raise InputError(
            f"The function must return an array or a list of outputs; "
            f"got {type(returned).__name__}."
        )
    _check_number(len(returned), n)
    return _from_sequence(returned)


def joined(tables: Sequence[OutputTable]) -> OutputTable:
    """Join tables of one randomizer, row under row; as sets where one of them holds sets.

    Raises
    ------
    InputError
        If their rows differ in length.
    """
    if any(is_ragged(table) for table in tables):
        tables = [table if is_ragged(table) else as_ragged(table.tolist()) for table in tables]
    widths = {table.shape[1] for table in tables}
    if len(widths) > 1:
        raise InputError(
            f"Every output must have the same number of entries; got {min(widths)} in one call "
            f"and {max(widths)} in another."
        )
    kinds = {"n" if table.dtype.kind in NUMERIC else table.dtype.kind for table in tables}
    if len(kinds) > 1 or _would_round(tables):
        tables = [table.astype(object) for table in tables]
    return np.concatenate(tables)


def _would_round(tables: Sequence[OutputTable]) -> bool:
    """Return whether integers of joined tables would be floats, and some no longer differ."""
    long = [t for t in tables if t.dtype.kind in "iu" and t.dtype.itemsize == 8 and t.size]
    return np.result_type(*tables).kind == "f" and any(
        max(-int(table.min()), int(table.max())) > 1 << 53 for table in long
    )


def is_ragged(table: OutputTable) -> bool:
    """Return whether a table holds outputs read as sets since they differ in length."""
    return table.dtype.kind == "O" and table.shape[1] == 1 and isinstance(table[0, 0], Ragged)


def as_ragged(rows: Iterable[Iterable[Any]]) -> OutputTable:
    """Return rows of entries as sets, of shape (n, 1)."""
    return objects([(Ragged(row),) for row in rows], 1)


def entries_of(returned: Any) -> list[tuple[Any, ...]]:
    """Return the entries of each output, read on its own."""
    outputs = returned.tolist() if isinstance(returned, np.ndarray) else returned
    return [_entries(output) for output in outputs]


def _check_number(returned: int, n: int) -> None:
    if returned != n:
        raise InputError(f"The function must return {n} outputs, as requested. Got {returned}.")


def _from_array(array: npt.NDArray[Any], n: int) -> OutputTable:
    if array.ndim == 0:
        raise InputError("The function must return an array of outputs; got a single value.")
    _check_number(len(array), n)
    if array.dtype.names is not None:
        return joined_columns([_from_array(array[name], n) for name in array.dtype.names])
    if array.dtype.kind == "O":
        return _from_sequence(array.tolist())
    if array.dtype.kind in "Mm":
        array = array.view(np.int64)
    if array.dtype.kind not in NUMERIC + "US":
        raise InputError(f"The outputs must be numbers or text; got {array.dtype}.")
    if array.size == 0 and n > 0:
        raise InputError("Every output must have at least one entry; got none.")
    table = np.ascontiguousarray(array.reshape(n, -1))
    if table.dtype.kind == "f":
        table = np.where(np.isnan(table), min(_MISSING, np.finfo(table.dtype).max), table)
    return table


def joined_columns(tables: Sequence[OutputTable]) -> OutputTable:
    """Join tables of equally many rows, side by side; of mixed kinds as objects."""
    kinds = {"n" if table.dtype.kind in NUMERIC else table.dtype.kind for table in tables}
    if len(kinds) > 1:
        tables = [table.astype(object) for table in tables]
    return np.concatenate(tables, axis=1)


def _from_sequence(outputs: Sequence[Any]) -> OutputTable:
    if all(isinstance(output, _SCALARS) for output in outputs):
        return _typed_rows([(output,) for output in outputs], 1)
    if all(isinstance(output, np.ndarray) for output in outputs):
        shapes = {(output.shape, output.dtype.kind) for output in outputs}
        if len(shapes) == 1 and outputs[0].dtype.kind in NUMERIC:
            return _from_array(np.stack(outputs), len(outputs))
    rows = [_entries(output) for output in outputs]
    widths = {len(row) for row in rows}
    if len(widths) == 1 and widths != {0}:
        return _typed_rows(rows, widths.pop())
    # Of unequal lengths: which values occur is all that can be compared.
    return as_ragged(rows)


def _entries(output: Any) -> tuple[Any, ...]:
    if isinstance(output, AbstractSet):
        return (frozenset(entry for item in output for entry in _entries(item)),)
    if isinstance(output, np.ndarray):
        return tuple(_flat(output.ravel().tolist()))
    if isinstance(output, np.generic):
        output = output.item()
    if isinstance(output, float) and output != output:
        return (_MISSING,)
    if isinstance(output, list | tuple):
        return tuple(_flat(output))
    if not isinstance(output, Hashable):
        raise InputError(
            f"An output must be hashable, an array or a tuple; got {type(output).__name__}."
        )
    # Outputs are compared where a user's own type may not be known.
    return (output if isinstance(output, _PLAIN) else repr(output),)


def _flat(output: Sequence[Any]) -> Iterator[Any]:
    for part in output:
        yield from _entries(part)


def _typed_rows(rows: Sequence[tuple[Any, ...]], width: int) -> OutputTable:
    if not all(isinstance(entry, _SCALARS) for row in rows for entry in row):
        return objects(rows, width)
    array = np.array(rows)
    if array.dtype.kind == "f" and any(_rounded(entry) for row in rows for entry in row):
        return objects(rows, width)  # As float64, different outputs would become equal.
    # Integers that fit no machine word stay objects.
    return array if array.dtype.kind == "O" else _from_array(array, len(array))


def _rounded(entry: Any) -> bool:
    return isinstance(entry, int | np.integer) and int(float(entry)) != int(entry)


def objects(rows: Sequence[Sequence[Any]], width: int) -> OutputTable:
    """Return rows of entries as a table of objects."""
    table = np.empty((len(rows), width), dtype=object)
    for column in range(width):
        table[:, column] = [row[column] for row in rows]
    return table


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
        return cls(table.shape[1], dtype, is_ragged(table))

    def read(self, returned: Any, n: int) -> OutputTable:
        """Read what a randomizer returned, in this form.

        Parameters
        ----------
        returned : array or sequence of n outputs
            As for :func:`as_outputs`.
        n : int

        Returns
        -------
        array of shape (m, d)
            m ≤ n: outputs that do not have this form are left out.

        Raises
        ------
        InputError
            If it cannot be read, or is an array of another width.
        """
        table = as_outputs(returned, n)
        if table.shape[1] == self.width and is_ragged(table) == self.ragged:
            return self.conform(table)
        if isinstance(returned, np.ndarray) and returned.dtype.kind != "O":
            raise InputError(
                f"Every output must have the same number of entries; got {self.width} in one call "
                f"and {table.shape[1]} in another."
            )
        rows = entries_of(returned)
        if self.ragged:
            return as_ragged(rows)
        return self._numbers_or_objects([row for row in rows if len(row) == self.width])

    def conform(self, table: OutputTable) -> OutputTable:
        """Return the rows of a table that have this form, in this form's type."""
        if table.dtype == self.dtype:
            return table
        if self.dtype.kind == "O":
            return table.astype(object)
        if table.dtype.kind not in NUMERIC:
            return self._numbers_or_objects(table.tolist())
        with np.errstate(invalid="ignore", over="ignore"):
            cast = table.astype(self.dtype)
        return np.asarray(cast[(cast == table).all(axis=1)])

    def _numbers_or_objects(self, rows: Sequence[Sequence[Any]]) -> OutputTable:
        if self.dtype.kind != "O":
            rows = [row for row in rows if all(self._holds(entry) for entry in row)]
            return np.array(rows, dtype=self.dtype).reshape(-1, self.width)
        table: npt.NDArray[Any] = np.empty((len(rows), self.width), dtype=object)
        for place, row in enumerate(rows):
            table[place] = row
        return table

    def _holds(self, entry: Any) -> bool:
        """Return whether an entry is a number that this form's type can hold."""
        if not isinstance(entry, bool | int | float):
            return False
        try:
            return bool(self.dtype.type(entry) == entry)
        except (OverflowError, ValueError):
            return False
