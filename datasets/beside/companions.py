"""Tables beside a release: the original features, and the synthetic rows that replaced some.

Their columns are put under those of the release before anything is coded, so that the same value
has the same code and the same number in all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from ldpaudit.datasets.beside.labelled_rows import LabelledRows, label_codes
from ldpaudit.datasets.beside.truth import matching_rows
from ldpaudit.datasets.features import EncodedFeatures, encode_features, is_categorical
from ldpaudit.datasets.formats.tabular import TableSource, open_table
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.numbers import read_numbers
from ldpaudit.datasets.roles import DEFAULT_LABEL, Roles
from ldpaudit.errors import InputError
from ldpaudit.release import FeatureTable, IntArray, Release, SyntheticTable

Columns = Iterable[tuple[str, pa.ChunkedArray]]
TEST: Final = "test"
PUBLIC: Final = "public"
HELD_OUT: Final = "held-out"


@dataclass(frozen=True)
class Companion:
    """One table beside the release: its columns in the release's order, and what it is called."""

    role: str
    table: TableSource
    rows: int
    columns: Iterator[tuple[str, pa.ChunkedArray]]
    order: pa.ChunkedArray | None = None
    label: pa.ChunkedArray | None = None


def open_beside(
    original: Any,
    synthetic: Any,
    rows: int,
    roles: Roles,
    special: Mapping[str, pa.ChunkedArray],
    test: Any = None,
    public: Any = None,
    held_out: Any = None,
) -> tuple[Companion, ...]:
    """Open the tables beside a release of ``rows`` rows; those that are None are left out."""
    beside = []
    if original is not None:
        ids = None if roles.identifier is None else special[roles.identifier]
        beside.append(open_original(original, rows, roles.features, roles.identifier, ids))
    if synthetic is not None:
        beside.append(open_labelled(synthetic, roles.features, roles.label, "synthetic"))
    if test is not None:
        beside.append(open_labelled(test, roles.features, roles.label, "test"))
    if public is not None:
        beside.append(open_labelled(public, roles.features, roles.label, PUBLIC))
    if held_out is not None:
        beside.append(open_rows(held_out, roles.features, HELD_OUT))
    return tuple(beside)


def open_original(
    source: Any,
    rows: int,
    features: Sequence[str],
    id_column: str | None,
    identifiers: pa.ChunkedArray | None,
) -> Companion:
    """Open the original features: in the release's row order, or joined on the id.

    Raises
    ------
    InputError
        If a feature column is not there, the number of rows differs, or an id has no match.
    """
    table = open_table(source)
    _check_names(table, features, "original")
    if identifiers is None or id_column is None:
        columns = _checked(table.columns(tuple(features)), rows)
        return Companion("original", table, rows, columns)
    if id_column not in table.names:
        raise missing_column(id_column, "id", table.names)
    cells = table.columns((id_column, *features), as_text=(id_column,))
    order = matching_rows(identifiers, next(cells)[1], "original features")
    return Companion("original", table, rows, cells, order)


def open_rows(source: Any, features: Sequence[str], role: str) -> Companion:
    """Open a table of other rows of which only the features are wanted.

    Raises
    ------
    InputError
        If a feature column is not there, or it has no rows.
    """
    table = open_table(source)
    _check_names(table, features, role)
    cells = list(table.columns(tuple(features)))
    rows = len(cells[0][1]) if cells else 0
    if not rows:
        raise InputError(f"The {role} table has no rows.")
    return Companion(role, table, rows, iter(cells))


def open_labelled(source: Any, features: Sequence[str], label: str, role: str) -> Companion:
    """Open a table of other rows with labels: synthetic rows, or test rows.

    Raises
    ------
    InputError
        If a feature column or the label's is not there, or it has no rows.
    """
    table = open_table(source)
    _check_names(table, features, role)
    name = next((n for n in (label, DEFAULT_LABEL) if n in table.names), None)
    if name is None:
        raise missing_column(label, "label", table.names)
    cells = table.columns((name, *features), as_text=(name,))
    labels = next(cells)[1]
    if not len(labels):
        raise InputError(f"The {role} table has no rows.")
    return Companion(role, table, len(labels), cells, label=labels)


def encode_together(
    cells: Columns, rows: int, beside: Sequence[Companion]
) -> tuple[EncodedFeatures, "Tables"]:
    """Code the release's feature columns together with those of the tables beside it."""
    if not beside:
        return encode_features(cells, rows), Tables()
    total = rows + sum(companion.rows for companion in beside)
    encoded = encode_features(_stacked(cells, beside), total)
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
            If a label of the synthetic table is none of the release's classes.
        """
        for companion, features in self.parts.values():
            if companion.role == TEST:
                continue
            if companion.role == HELD_OUT:
                release = replace(release, held_out=features)
            elif companion.label is None:
                release = replace(release, original=features)
            else:
                labelled = SyntheticTable(features, _codes(companion, release))
                if companion.role == PUBLIC:
                    release = replace(release, public=labelled)
                else:
                    release = replace(release, synthetic=labelled)
        return release

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
    text = companion.table.text
    return label_codes(companion.label, companion.role, release.classes, from_text=text)


def _check_names(table: TableSource, features: Sequence[str], role: str) -> None:
    for name in features:
        if name not in table.names:
            raise missing_column(name, f"feature of the {role} table", table.names)


def _checked(columns: Columns, rows: int) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in columns:
        if len(column) != rows:
            raise InputError(
                f"The original features must have as many rows as the release: {len(column)} "
                f"against {rows}."
            )
        yield name, column


def _stacked(cells: Columns, beside: Sequence[Companion]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in cells:
        columns = [column]
        for companion in beside:
            other = next(companion.columns)[1]
            columns.append(other if companion.order is None else other.take(companion.order))
        yield name, _joined(columns, name)


def _joined(columns: list[pa.ChunkedArray], name: str) -> pa.ChunkedArray:
    kinds = {column.type for column in columns}
    if len(kinds) > 1:
        target = _common(columns[0].type, kinds)
        try:
            columns = [column.cast(target) for column in columns]
        except pa.ArrowException:
            raise InputError(
                f"The column {quoted(name)} must hold the same kind of values in the release and "
                "in the tables beside it."
            ) from None
    return pa.chunked_array(list(chain.from_iterable(c.chunks for c in columns)), columns[0].type)


def _common(first: pa.DataType, kinds: set[pa.DataType]) -> pa.DataType:
    if all(is_categorical(kind) for kind in kinds):
        return pa.large_string()
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    if all(any(test(kind) for test in plain) for kind in kinds):
        return pa.float64()
    return first


def _part(encoded: EncodedFeatures, start: int, stop: int) -> EncodedFeatures:
    return replace(
        encoded,
        rows=stop - start,
        numeric=[block[start:stop] for block in encoded.numeric],
        categorical=[codes[start:stop] for codes in encoded.categorical],
    )
