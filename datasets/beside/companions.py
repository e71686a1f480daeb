"""Tables beside a release: the original features, and the synthetic rows that replaced some.

Their columns are put under those of the release before anything is coded, so that the same value
has the same code and the same number in all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.datasets.beside.truth import matching_rows
from ldpaudit.datasets.features import EncodedFeatures, encode_features, is_categorical
from ldpaudit.datasets.formats.columns import is_any
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.tabular import TableSource
from ldpaudit.datasets.labels import read_labels
from ldpaudit.datasets.names import ColumnError, called, missing_column, of_column
from ldpaudit.datasets.numbers import read_numbers
from ldpaudit.datasets.roles import DEFAULT_LABEL, Roles
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FeatureTable, IntArray, Release, SyntheticTable

Columns = Iterable[tuple[str, pa.ChunkedArray]]
ORIGINAL: Final = "original"
TEST: Final = "test"
HELD_OUT: Final = "held-out"


@dataclass(frozen=True)
class Companion:
    """One table beside the release, by its role; its columns are in the release's order."""

    role: str
    table: TableSource
    rows: int
    columns: Iterator[tuple[str, pa.ChunkedArray]]
    order: pa.ChunkedArray | None = None
    label: pa.ChunkedArray | None = None


def open_beside(
    sources: Mapping[str, Any],
    rows: int,
    roles: Roles,
    special: Mapping[str, pa.ChunkedArray],
    names: Sequence[str],
    files: FileOptions = AS_FOUND,
) -> tuple[Companion, ...]:
    """Open the tables beside a release of ``rows`` rows, by role; None where there is none.

    The original features have the release's row order, or are joined on the id; the other tables
    hold other rows, held-out ones without labels. ``names``: all columns of the release;
    ``files``: how text files are written.

    Raises
    ------
    InputError
        If a column is not there, a table has no rows, or the rows of the original features do not
        match the release's.
    """
    return tuple(
        _opened(open_table(source, files), role, rows, roles, special, names)
        for role, source in sources.items()
        if source is not None
    )


def _opened(
    table: TableSource,
    role: str,
    rows: int,
    roles: Roles,
    special: Mapping[str, pa.ChunkedArray],
    names: Sequence[str],
) -> Companion:
    for name in roles.features:
        if name not in table.names:
            place = called(name, names)
            raise InputError(f"The {role} table must have {place} of the release, too.")
    if role != ORIGINAL:
        return _other_rows(table, role, roles)
    if roles.identifier is None:
        columns = _checked(table.columns(roles.features), rows)
        return Companion(role, table, rows, columns)
    if roles.identifier not in table.names:
        raise missing_column(roles.identifier, "id", table.names)
    cells = table.columns((roles.identifier, *roles.features), as_text=(roles.identifier,))
    order = matching_rows(special[roles.identifier], next(cells)[1], "original features")
    return Companion(role, table, rows, cells, order)


def _other_rows(table: TableSource, role: str, roles: Roles) -> Companion:
    names = [] if role == HELD_OUT else [_label_column(table, roles.label)]
    cells = table.columns((*names, *roles.features), as_text=names)
    first = next(cells, None)
    if first is None or not len(first[1]):
        raise InputError(f"The {role} table has no rows.")
    if role == HELD_OUT:
        return Companion(role, table, len(first[1]), chain([first], cells))
    return Companion(role, table, len(first[1]), cells, label=first[1])


def _label_column(table: TableSource, label: str) -> str:
    for name in (label, DEFAULT_LABEL):
        if name in table.names:
            return name
    raise missing_column(label, "label", table.names, typed=False)


def encode_together(
    cells: Columns, rows: int, beside: Sequence[Companion], names: Sequence[str]
) -> tuple[EncodedFeatures, "Tables"]:
    """Code the release's feature columns together with those of the tables beside it.

    ``names``: all columns of the release.
    """
    if not beside:
        return encode_features(cells, rows, names), Tables()
    total = rows + sum(companion.rows for companion in beside)
    encoded = encode_features(_stacked(cells, beside, names), total, names)
    parts, start = {}, rows
    for companion in beside:
        part = _part(encoded, start, start + companion.rows)
        parts[companion.role] = (companion, part.table())
        start += companion.rows
    return _part(encoded, 0, rows), Tables(parts)


@dataclass(frozen=True)
class Tables:
    """The coded tables beside a release, by role."""

    parts: Mapping[str, tuple[Companion, FeatureTable]] = field(default_factory=dict)

    def beside(self, release: Release) -> Release:
        """Return the release with the tables beside it.

        Raises
        ------
        InputError
            If a label is none of the release's classes.
        """
        tables: dict[str, Any] = {}
        for role, (companion, features) in self.parts.items():
            if role != TEST:
                bare = companion.label is None
                table = features if bare else SyntheticTable(features, _codes(companion, release))
                tables[role.replace("-", "_")] = table
        return replace(release, **tables)

    def test_rows(self, release: Release) -> LabelledRows | None:
        """Return the test rows with their true labels, None where none were given.

        Raises
        ------
        InputError
            If a label is none of the release's classes, or no number where the release's are.
        """
        if TEST not in self.parts:
            return None
        companion, features = self.parts[TEST]
        assert companion.label is not None
        if release.numeric is not None:
            return LabelledRows(features, numbers=read_numbers(companion.label, TEST))
        return LabelledRows(features, _codes(companion, release))


def _codes(companion: Companion, release: Release) -> IntArray:
    assert companion.label is not None
    labels = read_labels(companion.label, companion.role, from_text=companion.table.text)
    which = f"label of the {companion.role} table"
    return labels.coded(release.classes, which, f"the release's {len(release.classes)} classes")


def _checked(columns: Columns, rows: int) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in columns:
        if len(column) != rows:
            raise InputError(
                f"The original features must have as many rows as the release: {len(column)} "
                f"against {rows}."
            )
        yield name, column


def _stacked(
    cells: Columns, beside: Sequence[Companion], names: Sequence[str]
) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in cells:
        columns = [column]
        for companion in beside:
            other = next(companion.columns)[1]
            columns.append(other if companion.order is None else other.take(companion.order))
        with of_column(name, names):
            joined = _joined(columns)
        yield name, joined


def _joined(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    kinds = {column.type for column in columns}
    if len(kinds) > 1:
        target = _common(columns[0].type, kinds)
        try:
            columns = [column.cast(target) for column in columns]
        except pa.ArrowException:
            raise ColumnError(
                "must hold the same kind of values in the release and in the tables beside it."
            ) from None
    return pa.chunked_array(list(chain.from_iterable(c.chunks for c in columns)), columns[0].type)


def _common(first: pa.DataType, kinds: set[pa.DataType]) -> pa.DataType:
    if all(is_categorical(kind) for kind in kinds):
        return pa.large_string()
    if all(is_any(kind, "integer", "floating", "boolean", "null") for kind in kinds):
        return pa.float64()
    return first


def _part(encoded: EncodedFeatures, start: int, stop: int) -> EncodedFeatures:
    return replace(
        encoded,
        rows=stop - start,
        numeric=[block[start:stop] for block in encoded.numeric],
        categorical=[codes[start:stop] for codes in encoded.categorical],
        extra=[block[start:stop] for block in encoded.extra],
    )
