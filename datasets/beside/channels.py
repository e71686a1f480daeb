"""A channel as people write it down: a matrix in a CSV file, with or without names around it."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.datasets.formats.csv_file import small_csv
from ldpaudit.datasets.labels import MOST_CLASSES
from ldpaudit.datasets.names import check_unique
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray

_NEAR: Final = 0.01
"""Rounded rows sum to 1 up to this; whether they do exactly is checked where they are used."""
TRANSITIONS: Final = re.compile(r"(?:(.*)\.)?Rs\.(.+)")
"""Columns of sdcMicro's parameters of post-randomization, as R makes a data frame of them."""


@dataclass(frozen=True)
class ChannelTable:
    """A channel as its file states it.

    Attributes
    ----------
    classes, outputs : list of str
    matrix : list of lists of float
    remark : str
        How the file was read, where it holds no names; else empty.
    """

    classes: list[str]
    outputs: list[str]
    matrix: list[list[float]]
    remark: str = ""

    def stated(self) -> dict[str, Any]:
        """Return the channel as a declaration states it."""
        return {"classes": self.classes, "outputs": self.outputs, "matrix": self.matrix}


def read_channel(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> dict[str, Any]:
    """Read a channel from a CSV file, as a declaration states it: see :func:`channel_table`."""
    return channel_table(path, files).stated()


def channel_table(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> ChannelTable:
    """Read a channel from a CSV file.

    Rows are true labels and columns outputs; each cell is P(output | label). The header names the
    outputs, and a first column the labels, unless the rows sum to 1 over all columns: then the
    file holds the matrix alone, and the header's names are those of the labels, too. R's tables
    (row names under an empty name or under none, sdcMicro's parameters) are read as well.

    Raises
    ------
    InputError
        If the file is not a rectangle of numbers with names around it, or its columns sum to 1
        and not its rows. Whether the rows sum to 1 is checked where the mechanism is built.
    """
    return channel_of(*cells_of(path, files))


def cells_of(
    path: str | os.PathLike[str], files: FileOptions = AS_FOUND
) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a channel's file, numbers with a decimal point."""
    file, rows = small_csv(path, "The channel", files, named=False)
    return [file.dialect.numbers.cell(name) for name in file.names], rows


def channel_of(header: list[str], rows: list[list[str]]) -> ChannelTable:
    """Return the channel that a table's header and rows state, as :func:`channel_table` does."""
    if _is_matrix([header, *rows]) and len(rows) + 1 == len(header) > 1:
        names = [str(place) for place in range(len(header))]
        return ChannelTable(
            names,
            names,
            _numbers([header, *rows]),
            "The file has no names: labels and outputs are numbered from 0, in its order.",
        )
    if not 2 <= len(rows) <= MOST_CLASSES:
        raise InputError(f"A channel must have 2 to 1000 labels, one per row. Got {len(rows)}.")
    header = with_row_names(header, rows)
    table = _of_sdcmicro(header, rows) or _named(header, rows)
    check_unique(table.outputs)
    return table


def with_row_names(header: list[str], rows: list[list[str]]) -> list[str]:
    """Return the header of a rectangular table; R's row names get an empty one.

    Raises
    ------
    InputError
        If it is not rectangular.
    """
    if rows and all(len(row) == len(header) + 1 for row in rows):
        header = ["", *header]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(
                f"A channel must be rectangular: its header has {len(header)} fields, row "
                f"{number} has {len(row)}."
            )
    return header


def _named(header: list[str], rows: list[list[str]]) -> ChannelTable:
    if _is_matrix(rows):
        if len(rows) != len(header):
            raise InputError(
                f"The rows of the channel sum to 1 over all {len(header)} columns, so no column "
                f"names its {len(rows)} labels; put their names into a first column."
            )
        remark = "The file has no column of labels: they are taken to be the outputs, in order."
        return ChannelTable(header, header, _numbers(rows), remark)
    matrix = _numbers([row[1:] for row in rows], "after its name")
    _check_sums(np.array(matrix), rows)
    return ChannelTable([row[0] for row in rows], header[1:], matrix)


def _of_sdcmicro(header: list[str], rows: list[list[str]]) -> ChannelTable | None:
    """Return the transitions in a table of sdcMicro's parameters; None for any other table."""
    found = {place: TRANSITIONS.fullmatch(name) for place, name in enumerate(header)}
    places = {place: match for place, match in found.items() if match is not None}
    if len(places) < 2:
        return None
    if len({match[1] for match in places.values()}) > 1:
        raise InputError(
            "The table holds the transitions of several variables; keep those of one, or declare "
            "all of them: ldpaudit declare FILE --channel TABLE."
        )
    matrix = _numbers([[row[place] for place in places] for row in rows])
    if len(matrix) != len(places):
        raise InputError("The transitions must be a square matrix: a row for each column Rs.")
    # R changes the names of columns, not those of rows.
    named = min(places) > 0
    names = [row[0] for row in rows] if named else [match[2] for match in places.values()]
    _check_sums(np.array(matrix), rows)
    return ChannelTable(names, names, matrix)


def _check_sums(matrix: FloatArray, rows: list[list[str]]) -> None:
    """Refuse a matrix of which rows do not sum to 1, where the reason may be its layout."""
    if _sum_to_one(matrix):
        return
    whole = _values(rows)
    if _sum_to_one(matrix.T) or (whole is not None and _sum_to_one(whole.T)):
        raise InputError(
            "The columns of the channel sum to 1, not its rows: rows must be true labels and "
            "columns outputs, so transpose it."
        )
    if whole is not None:
        raise InputError(
            "The rows of a channel must sum to 1; these do not, neither over all columns nor "
            "without the first one."
        )


def _is_matrix(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the rows are numbers alone, of one length, and each sums to 1."""
    values = _values(rows)
    return values is not None and _sum_to_one(values)


def _sum_to_one(values: FloatArray) -> bool:
    return bool((values >= 0).all() and (np.abs(values.sum(axis=1) - 1) <= _NEAR).all())


def _values(rows: Sequence[Sequence[str]]) -> FloatArray | None:
    try:
        return np.array([[float(cell) for cell in row] for row in rows], dtype=np.float64)
    except ValueError:
        return None


def _numbers(rows: Sequence[Sequence[str]], where: str = "alone") -> list[list[float]]:
    found = []
    for number, row in enumerate(rows, start=1):
        try:
            found.append([float(cell) for cell in row])
        except ValueError:
            raise InputError(f"Row {number} of the channel must hold numbers {where}.") from None
    return found
