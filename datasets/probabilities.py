"""Probabilities as people write them down: channels, priors, and one of each class for each row."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.csv_file import small_csv
from ldpaudit.datasets.labels import MOST_CLASSES, RELEASED, positions, read_texts
from ldpaudit.datasets.names import check_unique, missing_column, quoted
from ldpaudit.errors import InputError, refuse
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray, Label, Release
from ldpaudit.work.limits import CHANNEL_CELLS

# Rounded rows sum to 1 up to this; whether they do exactly is checked where they are used.
_NEAR: Final = 0.01
# Columns of sdcMicro's parameters of post-randomization, as R makes a data frame of them.
_TRANSITIONS: Final = re.compile(r"(?:(.*)\.)?Rs\.(.+)")
# Columns of what sdcMicro drew a matrix from.
_SETTINGS: Final = re.compile(r"(.*\.)?(pd|alpha)(\..+)?")
_VARIABLE: Final = "variable"
# The columns of a table with one row for each transition, also as R calls them.
_LONG: Final = (("from", "var1"), ("to", "var2"), ("probability", "freq", "prob"))


@dataclass(frozen=True)
class ChannelTable:
    """A channel as its file states it; ``remark`` says how a file without names was read."""

    classes: list[str]
    outputs: list[str]
    matrix: list[list[float]]
    remark: str = ""

    def stated(self) -> dict[str, Any]:
        """Return the channel as a declaration states it."""
        return {"classes": self.classes, "outputs": self.outputs, "matrix": self.matrix}


@dataclass(frozen=True)
class ColumnChannels:
    """The channels of one private column: by stratum, or of all rows under an empty text."""

    variable: str | None
    by: str | None
    tables: Mapping[str, ChannelTable]
    named: str | None = None
    """The variable in the names of sdcMicro's parameters, where the table has no other."""

    def mechanism(self) -> dict[str, Any]:
        """Return the mechanism as a declaration states it, labels that write numbers as such."""
        channels = []
        for table in within_groups(self.tables.values()):
            labels = {"classes": table.classes, "outputs": table.outputs}
            read = {key: list(read_texts(texts)) for key, texts in labels.items()}
            channels.append({"name": "channel", **table.stated(), **read})
        if self.by is None:
            return channels[0]
        pairs = zip(read_texts(list(self.tables)), channels, strict=True)
        strata = [{"value": value, "mechanism": channel} for value, channel in pairs]
        return {"name": "by-stratum", "strata": strata}


def within_groups(tables: Iterable[ChannelTable]) -> list[ChannelTable]:
    """Return the channels of strata over the labels of all of them, each within its own labels.

    A stratum releases none but its own labels. A label that it does not have is replaced by one of
    them, with the mean of their probabilities, so its ε is the one of its own labels.
    """
    found = list(tables)
    classes = list(dict.fromkeys(label for table in found for label in table.classes))
    outputs = list(dict.fromkeys(label for table in found for label in table.outputs))
    if all((table.classes, table.outputs) == (classes, outputs) for table in found):
        return found
    if any({*table.classes} != {*table.outputs} for table in found):
        return found  # Outputs of their own mean the same in all strata, or nothing.
    return [
        ChannelTable(
            classes,
            classes,
            embedded(table.matrix, table.classes, table.outputs, classes).tolist(),
            table.remark,
        )
        for table in found
    ]


def embedded(
    matrix: Sequence[Sequence[float]] | FloatArray,
    classes: Sequence[Label],
    outputs: Sequence[Label],
    every: Sequence[Label],
) -> FloatArray:
    """Return a channel between some labels over ``every`` label, float64 of shape (k, k)."""
    own = np.asarray(matrix, dtype=np.float64)
    to = [list(every).index(label) for label in outputs]
    whole = np.zeros((len(every), len(every)))
    # A label that is none of them is drawn as their mean, but never as one that is unperturbed.
    alone = np.count_nonzero(own, axis=0) == 1
    drawn = (own[:, ~alone] > 0).any(axis=1)
    whole[:, to] = own[drawn if drawn.any() else slice(None)].mean(axis=0)
    for label, row in zip(classes, own, strict=True):
        whole[list(every).index(label)] = 0
        whole[list(every).index(label), to] = row
    return whole


def read_channel(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> dict[str, Any]:
    """Read a channel from a CSV file, as a declaration states it: see :func:`channel_table`."""
    return channel_table(path, files).stated()


def channel_table(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> ChannelTable:
    """Read a channel from a CSV file."""
    # Rows are true labels and columns outputs; each cell is P(output | label). The header names the
    # outputs, and a first column the labels, unless the rows sum to 1 over all columns: then the
    # file holds the matrix alone, and the header's names are those of the labels, too. R's tables
    # (row names under an empty name or under none, sdcMicro's parameters) are read as well.
    return _channel(*_cells(path, files))


def column_channels(
    path: str | os.PathLike[str], by: str | None = None, files: FileOptions = AS_FOUND
) -> tuple[ColumnChannels, ...]:
    """Read the channels of one private column or more from a CSV file.

    Besides the layouts of a single channel: a column ``variable`` distinguishes the channels of
    several private columns, and another one (``by``; default: the only one left) those of strata.
    Each channel is a block of rows, or a row for each transition (from, to, probability).
    sdcMicro's parameters of several variables are read.
    """
    header, rows = _cells(path, files)
    prefixes = {match[1] for match in map(_TRANSITIONS.fullmatch, header) if match}
    places = _long(header)
    if not (_VARIABLE in header or len(prefixes) > 1 or places or by):
        alone = next(iter(prefixes), None)
        return (ColumnChannels(None, None, {"": _channel(header, rows)}, alone),)
    header = _rectangular(header, rows)
    if by is None and (places or prefixes):  # Else any other column may be an output.
        known = {_VARIABLE, ""} | {header[place] for place in places or ()}
        other = (_TRANSITIONS.fullmatch, _SETTINGS.fullmatch)
        rest = [n for n in header if n not in known and not any(is_other(n) for is_other in other)]
        if len(rest) > 1:
            raise InputError(
                f"The table of channels has {len(rest)} columns that may tell strata; name the one "
                "that does (--by), and leave out the others."
            )
        by = next(iter(rest), None)
    if by is not None and by not in header:
        raise missing_column(by, "strata (--by)", header)
    distinguishing = [name for name in (_VARIABLE, by) if name in header]
    groups: dict[tuple[str | None, str], list[Sequence[str]]] = {}
    for row in rows:
        variable = row[header.index(_VARIABLE)] if _VARIABLE in header else None
        groups.setdefault((variable, "" if by is None else row[header.index(by)]), []).append(row)
    # R numbers the row names of tables that are put together; they are names no more.
    unused = {*distinguishing, ""} if distinguishing else set()
    found: dict[str | None, dict[str, ChannelTable]] = {}
    for (variable, stratum), some in groups.items():
        filled = [any(row[j] not in ("", "NA") for row in some) for j in range(len(header))]
        used = [j for j, name in enumerate(header) if filled[j] and name not in unused]
        for name, table in _channels(
            [header[j] for j in used], [[r[j] for j in used] for r in some]
        ):
            if stratum in found.setdefault(variable or name, {}):
                raise InputError("The table of channels has one of them twice.")
            found[variable or name][stratum] = table
    return tuple(ColumnChannels(name, by, tables) for name, tables in found.items())


def only_channels(channels: Sequence[ColumnChannels], label: str) -> ColumnChannels:
    """Return the channels of one private column, which a table of one column need not name."""
    if len(channels) == 1 and channels[0].variable is None:
        return channels[0]
    names = {one.variable: one for one in channels}
    found = names.get(label, names.get(label.removesuffix(RELEASED)))
    if found is None:
        raise InputError(
            f"The table of channels has none of the column {quoted(label)}; it has those of "
            f"other columns ({len(channels)})."
        )
    return found


def _cells(path: str | os.PathLike[str], files: FileOptions) -> tuple[list[str], list[list[str]]]:
    file, rows = small_csv(path, "The channel", files, named=False)
    return [file.dialect.numbers.cell(name) for name in file.names], rows


def _long(header: Sequence[str]) -> tuple[int, ...] | None:
    """Return the places of from, to and probability; None where there is one missing."""
    lower = [name.lower() for name in header]
    found = [[lower.index(name) for name in names if name in lower] for names in _LONG]
    return tuple(places[0] for places in found) if all(found) else None


def _channels(
    header: list[str], rows: list[list[str]]
) -> Iterator[tuple[str | None, ChannelTable]]:
    """Yield the channels of one group of rows, with the variables that their columns name."""
    if (places := _long(header)) is not None:
        cells = {(row[places[0]], row[places[1]]): row[places[2]] for row in rows}
        classes, outputs = (list(dict.fromkeys(pair[i] for pair in cells)) for i in (0, 1))
        if len(cells) < max(len(rows), len(classes) * len(outputs)):
            raise InputError(
                "A list of transitions must state the probability of each pair of labels once: "
                f"{len(classes)} × {len(outputs)} pairs. Got {len(rows)} rows."
            )
        matrix = [[one, *(cells[one, output] for output in outputs)] for one in classes]
        yield None, _channel(["label", *outputs], matrix)
        return
    named = {j: match for j, name in enumerate(header) if (match := _TRANSITIONS.fullmatch(name))}
    prefixes = dict.fromkeys(match[1] for match in named.values())
    if len(prefixes) < 2:
        yield next(iter(prefixes), None), _channel(header, rows)
        return
    changed = [re.sub(r"[^\w.]", ".", row[0]) for row in rows]
    for prefix in prefixes:
        own = [place for place, match in named.items() if match[1] == prefix]
        # Row names are those of one variable only, unless R has changed the names of columns.
        pairs = zip(changed, (named[place][2] for place in own), strict=False)
        if header[0] == "" and all(column in (name, f"X{name}") for name, column in pairs):
            own = [0, *own]
        yield prefix, _channel([header[j] for j in own], [[row[j] for j in own] for row in rows])


def _channel(header: list[str], rows: list[list[str]]) -> ChannelTable:
    """Return the channel that a header and rows state, whatever names stand around the numbers."""
    every = _values([header, *rows]) if len(rows) + 1 == len(header) > 1 else None
    if every is not None and _sum_to_one(every):
        names = [str(place) for place in range(len(header))]
        remark = "The file has no names: labels and outputs are numbered from 0, in its order."
        return ChannelTable(names, names, every.tolist(), remark)
    if not 2 <= len(rows) <= MOST_CLASSES:
        raise InputError(f"A channel must have 2 to 1000 labels, one per row. Got {len(rows)}.")
    many = len(rows) * (len(header) - 1) > CHANNEL_CELLS
    refuse(many, f"A channel has at most {CHANNEL_CELLS:,} probabilities.")
    header, whole, remark, where = _rectangular(header, rows), _values(rows), "", "alone"
    named = {j: match for j, name in enumerate(header) if (match := _TRANSITIONS.fullmatch(name))}
    if len(named) > 1:
        if len({match[1] for match in named.values()}) > 1:
            raise InputError(
                "The table holds the transitions of several variables; keep those of one, or "
                "declare all of them: ldpaudit declare FILE --channel TABLE."
            )
        if len(rows) != len(named):
            raise InputError("The transitions must be a square matrix: a row for each column Rs.")
        # R changes the names of columns, not those of rows.
        changed = [match[2] for match in named.values()]
        classes = outputs = [row[0] for row in rows] if min(named) > 0 else changed
        cells = [[row[place] for place in named] for row in rows]
    elif whole is not None and _sum_to_one(whole):
        if len(rows) != len(header):
            raise InputError(
                f"The rows of the channel sum to 1 over all {len(header)} columns, so no column "
                f"names its {len(rows)} labels; put their names into a first column."
            )
        classes, outputs, cells = header, header, rows
        remark = "The file has no column of labels: they are taken to be the outputs, in order."
    else:
        classes, outputs = [row[0] for row in rows], header[1:]
        cells, where = [row[1:] for row in rows], "after its name"
    matrix = _values(cells)
    if matrix is None:
        number = next(i for i, row in enumerate(cells, start=1) if _values([row]) is None)
        raise InputError(f"Row {number} of the channel must hold numbers {where}.")
    if not _sum_to_one(matrix):
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
    check_unique(outputs)
    twice = len(classes) - len({*classes})
    rows_have = "row has" if twice == 1 else "rows have"
    refuse(
        twice,
        f"The labels of a channel must be distinct, one row each; {twice:,} {rows_have} the label "
        "of a row before.",
    )
    return ChannelTable(classes, outputs, matrix.tolist(), remark)


def _rectangular(header: list[str], rows: list[list[str]]) -> list[str]:
    """Return the header of a rectangular table (InputError); R's row names get an empty one."""
    if rows and all(len(row) == len(header) + 1 for row in rows):
        header = ["", *header]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(
                f"A channel must be rectangular: its header has {len(header)} fields, row "
                f"{number} has {len(row)}."
            )
    return header


def _sum_to_one(values: FloatArray) -> bool:
    return bool((values >= 0).all() and (np.abs(values.sum(axis=1) - 1) <= _NEAR).all())


def _values(rows: Sequence[Sequence[str]]) -> FloatArray | None:
    try:
        return np.array([[float(cell) for cell in row] for row in rows], dtype=np.float64)
    except ValueError:
        return None


_TOLERANCE: Final = 1e-3


def with_canaries(release: Release, source: Any, files: FileOptions = AS_FOUND) -> Release:
    """Return the release with the probabilities that the auditor drew canaries' labels with."""
    # A table has the release's row order and a column named after each class; a row without any
    # number is no canary. An array (n, k) has the release's order of classes, NaN for no canary.
    if source is None:
        return release
    values = _class_columns(source, release, "The canaries'", files)
    drawn = ~np.isnan(values).all(axis=1)
    values[drawn] = _distributions(values[drawn], "The canaries'")
    return replace(release, canaries=values)


def class_probabilities(
    source: Any, release: Release, whose: str, files: FileOptions = AS_FOUND
) -> FloatArray:
    """Return probabilities of each class for each row of a release, float64 (n, k)."""
    # A table has a column named after each class, an array the release's order of classes.
    return _distributions(_class_columns(source, release, whose, files), whose)


def with_public_posterior(release: Release, source: Any, files: FileOptions = AS_FOUND) -> Release:
    """Return the release with P̂(y | x) of the public model that model-based noise was drawn with.

    A table has a column named after each class, and the release's row order; an array (n, k) has
    the declaration's order of classes, or without one the release's.
    """
    if source is None:
        return release
    values = _class_columns(source, release, "The public model's", files)
    declared = release.declaration and release.declaration.parameters.get("classes")
    if isinstance(source, np.ndarray) and declared and set(declared) == set(release.classes):
        values = values[:, [list(declared).index(label) for label in release.classes]]
    return replace(release, public_posterior=_distributions(values, "The public model's"))


def _class_columns(source: Any, release: Release, whose: str, files: FileOptions) -> FloatArray:
    """Return a table's columns in the order of the release's classes, float64 (n, k)."""
    values, shape = source, (len(release), len(release.classes))
    if not isinstance(source, np.ndarray):
        table = open_table(source, files)
        places = positions(release.classes, table.names)
        missing = int((places < 0).sum())
        if missing:
            raise InputError(
                f"{whose} table must have a column named after each of {len(places)} classes; "
                f"{missing} are missing."
            )
        names = [table.names[place] for place in places]
        values = np.stack([column.to_numpy() for _, column in table.columns(names)], axis=1)
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{whose} table must hold numbers.") from None
    if release.places is not None:  # Those rows were read of the release.
        values = values[release.places[release.places < len(values)]]
    if values.shape != shape:
        raise InputError(
            f"{whose} table must have {shape[0]:,} rows, in the release's order, and a probability "
            f"for each of {shape[1]} classes. Got shape {values.shape} instead."
        )
    return np.asarray(values)


def _distributions(values: FloatArray, whose: str) -> FloatArray:
    """Return rows that sum to 1 up to a thousandth scaled to sum to 1 (InputError)."""
    total = values.sum(axis=1, keepdims=True)
    good = (values >= 0).all(axis=1) & (np.abs(total[:, 0] - 1) <= _TOLERANCE)
    if not good.all():
        raise InputError(
            f"{whose} probabilities must be given for every class and sum to 1; in "
            f"{int((~good).sum())} of {len(values)} rows they do not."
        )
    return np.asarray(values / total)
