"""The form in which outputs are tested, fixed beforehand so that each is read on its own.

A list of outputs is first read as a whole: one None among numbers makes objects of all, one output
of another length makes sets of all. In the test a guess must depend on its own output alone, or
candidates of one call would not be independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.commands.black_box.estimators.outputs import (
    NUMERIC,
    OutputTable,
    as_outputs,
    as_ragged,
    entries_of,
    is_ragged,
)
from ldpaudit.errors import InputError


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
            As for :func:`ldpaudit.commands.black_box.estimators.outputs.as_outputs`.
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
