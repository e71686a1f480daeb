"""Tables of several channels: one for each variable, and for each stratum, in one CSV file."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldpaudit.datasets.beside.channels import (
    TRANSITIONS,
    ChannelTable,
    cells_of,
    channel_of,
    with_row_names,
)
from ldpaudit.datasets.labels import read_texts
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions

RELEASED: Final = "_pram"
"""What sdcMicro adds to the name of a column when it releases it."""
_VARIABLE: Final = "variable"
"""The column that names the private column of each row."""
_LONG: Final = (("from", "var1"), ("to", "var2"), ("probability", "freq", "prob"))
"""The columns of a table with one row for each transition, also as R calls them."""
_SETTINGS: Final = re.compile(r"(.*\.)?(pd|alpha)(\..+)?")
"""Columns of what sdcMicro drew a matrix from."""
_EMPTY: Final = frozenset(("", "NA"))

Cells = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class ColumnChannels:
    """The channels of one private column as a table states them.

    Attributes
    ----------
    variable : str or None
        The column's name; None where the table does not say.
    by : str or None
        The column that tells the strata; None: one channel for all rows.
    tables : mapping from str to ChannelTable
        The channel of each stratum by its value; of all rows under an empty text.
    """

    variable: str | None
    by: str | None
    tables: Mapping[str, ChannelTable]

    def mechanism(self) -> dict[str, Any]:
        """Return the mechanism as a declaration states it, labels that write numbers as such."""
        channels = [{"name": "channel", **_plain(table)} for table in self.tables.values()]
        if self.by is None:
            return channels[0]
        values = read_texts(list(self.tables))
        strata = [
            {"value": value, "mechanism": channel}
            for value, channel in zip(values, channels, strict=True)
        ]
        return {"name": "by-stratum", "strata": strata}


def _plain(table: ChannelTable) -> dict[str, Any]:
    stated = table.stated()
    return stated | {key: list(read_texts(stated[key])) for key in ("classes", "outputs")}


def column_channels(
    path: str | os.PathLike[str], by: str | None = None, files: FileOptions = AS_FOUND
) -> tuple[ColumnChannels, ...]:
    """Read the channels of one private column or more from a CSV file.

    Besides the layouts of a single channel: a column ``variable`` tells the channels of several
    private columns apart, and another one strata. Each channel is a block of rows, or a row for
    each transition (from, to, probability). sdcMicro's parameters of several variables are read.

    Parameters
    ----------
    path : str or os.PathLike
    by : str or None
        The column that tells strata; default: the one column of a table of several channels that
        is nothing else.
    files : FileOptions
        How the file is written.

    Raises
    ------
    InputError
        If there is no such column, it is not clear which, or a channel cannot be read.
    """
    header, rows = cells_of(path, files)
    if not _several(header) and by is None:
        return (ColumnChannels(None, None, {"": channel_of(header, rows)}),)
    header = with_row_names(header, rows)
    by = _strata(header) if by is None else by
    if by is not None and by not in header:
        raise missing_column(by, "strata (--by)", header)
    found: dict[str | None, dict[str, ChannelTable]] = {}
    for (variable, stratum), cells in _groups(header, rows, by).items():
        for name, table in _channels(*cells):
            if stratum in found.setdefault(variable or name, {}):
                raise InputError("The table of channels states one of them twice.")
            found[variable or name][stratum] = table
    return tuple(ColumnChannels(name, by, tables) for name, tables in found.items())


def _several(header: Sequence[str]) -> bool:
    """Return whether the header is that of a table of several channels, or of transitions."""
    prefixes = {match[1] for match in map(TRANSITIONS.fullmatch, header) if match}
    return _VARIABLE in header or len(prefixes) > 1 or _long(header) is not None


def _long(header: Sequence[str]) -> tuple[int, ...] | None:
    """Return the places of from, to and probability; None where there is one missing."""
    lower = [name.lower() for name in header]
    found = [[lower.index(name) for name in names if name in lower] for names in _LONG]
    return tuple(places[0] for places in found) if all(found) else None


def _strata(header: Sequence[str]) -> str | None:
    """Return the only column that is nothing else, None where there is none."""
    if _long(header) is None and not any(map(TRANSITIONS.fullmatch, header)):
        return None  # Any other column may be an output.
    known = {_VARIABLE, ""} | {header[place] for place in _long(header) or ()}
    rest = [
        name
        for name in header
        if not (name in known or TRANSITIONS.fullmatch(name) or _SETTINGS.fullmatch(name))
    ]
    if len(rest) > 1:
        raise InputError(
            f"The table of channels has {len(rest)} columns that may tell strata; name the one "
            "that does (--by), and leave out the others."
        )
    return rest[0] if rest else None


def _groups(
    header: Sequence[str], rows: Sequence[Sequence[str]], by: str | None
) -> dict[tuple[str | None, str], Cells]:
    """Return the rows of each variable and stratum, without the columns that tell them apart."""
    telling = [name for name in (_VARIABLE, by) if name in header]
    groups: dict[tuple[str | None, str], list[Sequence[str]]] = {}
    for row in rows:
        variable = row[header.index(_VARIABLE)] if _VARIABLE in header else None
        stratum = "" if by is None else row[header.index(by)]
        groups.setdefault((variable, stratum), []).append(row)
    # R numbers the row names of tables that are put together; they are names no more.
    left_out = {*telling, ""} if telling else set()
    return {key: _used(header, some, left_out) for key, some in groups.items()}


def _used(header: Sequence[str], rows: Sequence[Sequence[str]], left_out: set[str | None]) -> Cells:
    """Return a group's cells without the columns that are left out, or empty."""
    places = [
        place
        for place, name in enumerate(header)
        if name not in left_out and any(row[place] not in _EMPTY for row in rows)
    ]
    return [header[p] for p in places], [[row[p] for p in places] for row in rows]


def _channels(
    header: list[str], rows: list[list[str]]
) -> Iterator[tuple[str | None, ChannelTable]]:
    """Yield the channels of one group of rows, with the variables that their columns name."""
    places = _long(header)
    if places is not None:
        yield None, _of_transitions([[row[place] for place in places] for row in rows])
        return
    matches = {place: TRANSITIONS.fullmatch(name) for place, name in enumerate(header)}
    named = {place: match for place, match in matches.items() if match is not None}
    prefixes = dict.fromkeys(match[1] for match in named.values())
    if len(prefixes) < 2:
        yield next(iter(prefixes), None), channel_of(header, rows)
        return
    for prefix in prefixes:
        own = [place for place, match in named.items() if match[1] == prefix]
        # Row names are those of one variable only, unless R has changed the names of columns.
        given = [0] if _row_names(header, rows, [named[place][2] for place in own]) else []
        cells = [[row[place] for place in (*given, *own)] for row in rows]
        yield prefix, channel_of([header[place] for place in (*given, *own)], cells)


def _row_names(header: Sequence[str], rows: Sequence[Sequence[str]], columns: list[str]) -> bool:
    """Return whether the row names are what R made these names of columns from."""
    changed = [re.sub(r"[^\w.]", ".", row[0]) for row in rows]
    return header[0] == "" and all(
        column in (name, f"X{name}") for name, column in zip(changed, columns, strict=False)
    )


def _of_transitions(rows: Sequence[Sequence[str]]) -> ChannelTable:
    """Return the channel that a list of transitions states."""
    cells = {(row[0], row[1]): row[2] for row in rows}
    classes, outputs = (list(dict.fromkeys(row[i] for row in rows)) for i in (0, 1))
    if len(cells) < len(rows) or len(cells) < len(classes) * len(outputs):
        raise InputError(
            "A list of transitions must state the probability of each pair of labels once: "
            f"{len(classes)} × {len(outputs)} pairs. Got {len(rows)} rows."
        )
    matrix = [[label, *(cells[label, output] for output in outputs)] for label in classes]
    return channel_of(["label", *outputs], matrix)


def only_channels(channels: Sequence[ColumnChannels], label: str) -> ColumnChannels:
    """Return the channels of one private column.

    A table of one column's channels need not name it.

    Raises
    ------
    InputError
        If the table has channels of other columns only.
    """
    if len(channels) == 1 and channels[0].variable is None:
        return channels[0]
    names = {one.variable: one for one in channels}
    found = names.get(label, names.get(label.removesuffix(RELEASED)))
    if found is None:
        raise InputError(
            f"The table of channels has none of the column {quoted(label)}; it has those of "
            f"{len(channels)} other column(s)."
        )
    return found
