"""Which tables are read batch by batch, where their blocks lie, and whether memory is enough."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ldpaudit.datasets.formats.batches import FileBatches, ParquetBatches
from ldpaudit.datasets.formats.tabular import TableSource
from ldpaudit.errors import InputError
from ldpaudit.memory import LEAST, allowance, shown
from ldpaudit.scratch import Scratch

_ROWS, _CELLS = 1 << 17, 1 << 22
"""A Parquet file with fewer is read whole."""
_BYTES, _COLUMNS = 1 << 26, 1000
"""A smaller CSV file, or one with more columns, is read whole."""
_IN_MEMORY: Final = 0.25
"""Share of the memory that features may take; larger ones go to the scratch folder."""
_BYTES_PER_ROW: Final = 24
"""What an audit needs of each row besides features: labels, halves, and one pass over them."""


def is_large(table: TableSource) -> bool:
    """Return whether a table is read batch by batch."""
    if isinstance(table, ParquetBatches):
        return table.row_count >= _ROWS and table.row_count * len(table.names) >= _CELLS
    if not isinstance(table, FileBatches):
        return False
    return table.location.size() >= _BYTES and len(table.names) <= _COLUMNS


@dataclass
class Space:
    """Where the blocks of a table go.

    Attributes
    ----------
    memory : int or None
        The bytes that the audit may use; None: half of the machine's.
    scratch : Scratch
        Holds what is larger than a quarter of that.
    """

    memory: int | None = None
    scratch: Scratch = field(default_factory=Scratch)

    def check(self, rows: int) -> None:
        """Refuse an amount of memory in which so many rows cannot be audited.

        Raises
        ------
        InputError
            It says the least that is enough.
        """
        least = LEAST + rows * _BYTES_PER_ROW
        if self.memory is not None and self.memory < least:
            raise InputError(
                f"--memory is {shown(self.memory)}, and {rows:,} rows need at least {shown(least)}."
            )

    def placing(self, rows: int, width: int) -> Callable[[tuple[int, ...], Any], Any]:
        """Return what gives the arrays for a table of so many rows and columns."""
        if rows * width * 4 <= allowance(self.memory) * _IN_MEMORY:
            return np.zeros
        return self.scratch.array
