"""The cells of a release: labels, ids and groups at once, the other columns one by one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.claimed import Claimed
from ldpaudit.datasets.formats.tables import TEXTS, TableSource, comparable_values, is_any
from ldpaudit.datasets.names import Roles, quoted
from ldpaudit.datasets.rows_in_memory import rows_to_read
from ldpaudit.datasets.truth import ReleasedRows, Truth, read_truth, true_labels
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions
from ldpaudit.release import IndexArray


@dataclass(frozen=True)
class Cells:
    """The cells of a release: labels, ids and groups at once, the other columns one by one."""

    special: dict[str, pa.ChunkedArray]
    """The columns that are no features, by name."""
    columns: Iterator[tuple[str, pa.ChunkedArray]]
    """The features, then the columns that are left out, each with its name."""
    left_out: tuple[str, ...]
    """The columns that have no role."""
    keys: dict[str, pa.ChunkedArray]
    """Ids and groups, as they can be compared."""
    rows: int
    """How many rows the release has."""
    looked_at: IndexArray | None
    """The rows that are read; None for all."""
    read: int
    """How many rows are read."""

    def __len__(self) -> int:
        return self.read

    def of(self, name: str) -> pa.ChunkedArray:
        """Return a column that is no feature."""
        return self.special[name]

    def forget(self, names: Iterable[str | None]) -> None:
        """Let go of labels, which are coded by now."""
        for name in names:
            self.special.pop(name or "", None)


def read_special(
    table: TableSource, roles: Roles, claimed: Claimed, memory: int | None, *, joined: bool
) -> Cells:
    """Read the columns that are no features (InputError where there are no rows).

    ``joined``: the rows are joined with those of other releases, so all are needed.
    """
    rows, looked_at = rows_to_read(table, roles, memory, joined=joined or claimed.bag is not None)
    used = {*roles.special, *roles.features, claimed.bag}
    left_out = tuple(name for name in table.names if name not in used)
    wanted = (*roles.special, *roles.features, *left_out)
    columns = table.columns(wanted, roles.special, looked_at)
    special = {name: next(columns)[1] for name in roles.special}
    read = len(special[roles.label])
    if not read:
        raise InputError(f"The release {quoted(table.name)} has no rows.")
    return Cells(
        special,
        columns,
        left_out,
        {name: _key(special[name]) for name in roles.keys},
        read if rows is None or looked_at is None else rows,
        looked_at,
        read,
    )


def known_truth(
    cells: Cells,
    roles: Roles,
    truth: Any,
    truth_column: str | None,
    files: FileOptions,
    *,
    numeric: bool,
    text: bool,
) -> Truth | None:
    """Return the true labels that are given, or that the release holds; None without any.

    ``numeric``: whether they are numbers; ``text``: whether the release is a text file.
    """
    if truth is not None:
        release = ReleasedRows(
            cells.rows,
            roles.label,
            id_column=roles.identifier,
            identifiers=None if roles.identifier is None else cells.of(roles.identifier),
            looked_at=cells.looked_at,
        )
        return read_truth(truth, release, truth_column=truth_column, numeric=numeric, files=files)
    if roles.truth is None:
        return None
    own = true_labels(cells.of(roles.truth), numeric=numeric, from_text=text)
    return Truth(own, roles.truth)


def _key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids or groups as they can be compared; whole numbers of a text file as integers."""
    column = comparable_values(column)
    if not is_any(column.type, *TEXTS) or not len(column):
        return column
    whole = pc.all(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]{0,17})$")).as_py()
    return column.cast(pa.int64()) if whole else column
