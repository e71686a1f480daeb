"""Tables that come with a release: true labels, original features, synthetic and other rows."""

# Each is in the release's row order, joined on an id, or of rows of its own. Features are put under
# those of the release before anything is coded, so that the same value has the same code in all of
# them. Warnings go into reports, so they give a column's number, not its name.

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ldpaudit.datasets.as_read import ColumnReader
from ldpaudit.datasets.declaration import check_true_labels
from ldpaudit.datasets.domains import read_numbers
from ldpaudit.datasets.features import EncodedFeatures, encode_features, is_categorical
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import (
    NUMBERS,
    TEXTS,
    VALUES,
    TableSource,
    decoded,
    is_any,
    value_type,
)
from ldpaudit.datasets.labels import read_labels
from ldpaudit.datasets.names import (
    DEFAULT_LABEL,
    ColumnError,
    Roles,
    called,
    missing_column,
    of_column,
)
from ldpaudit.datasets.truth import matching_rows
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FeatureTable, FloatArray, IntArray, Release, SyntheticTable

Columns = Iterable[tuple[str, pa.ChunkedArray]]
# The tables that come with a release, by role, and their coded features.
Parts = Mapping[str, tuple["Companion", FeatureTable]]


@dataclass(frozen=True)
class LabelledRows:
    """Other rows with their true labels: the release's codes, int32 (t,), or numbers (t,)."""

    features: FeatureTable
    labels: IntArray | None = None
    numbers: FloatArray | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.features)


@dataclass(frozen=True)
class Companion:
    """One table, by its role; its columns are in the release's order."""

    role: str
    table: TableSource
    rows: int
    columns: Iterator[tuple[str, pa.ChunkedArray]]
    order: pa.ChunkedArray | pa.Array | None = None
    label: pa.ChunkedArray | None = None


# Tables of other people, whose labels are true ones.
_TRUE: Final = ("test", "public")


def open_companions(
    sources: Mapping[str, Any],
    rows: int,
    roles: Roles,
    special: Mapping[str, pa.ChunkedArray],
    names: Sequence[str],
    files: FileOptions = AS_FOUND,
    looked_at: npt.NDArray[np.int64] | None = None,
) -> tuple[Companion, ...]:
    """Open the tables that come with a release of ``rows`` rows and ``names``, by role.

    The original features have the release's row order, or are joined on the id; the other tables
    hold other rows, held-out ones without labels. ``looked_at``: as of ``read_truth``.
    """
    found = []
    for role, source in sources.items():
        if source is None:
            continue
        table, original = open_table(source, files), role == "original"
        for name in roles.features:
            if name not in table.names:
                place = called(name, names)
                raise InputError(f"The {role} table must have {place} of the release, too.")
        if original:
            key = roles.identifier
        elif role == "held-out":
            key = table.names[0]  # It counts the rows.
        else:
            key = roles.label if roles.label in table.names else DEFAULT_LABEL
        if key is not None and key not in table.names:
            role_of_key = "id" if original else "label"
            key = key if original else roles.label
            raise missing_column(key, role_of_key, table.names, typed=original)
        keys = () if key is None else (key,)
        if role in _TRUE:
            check_true_labels(table, keys, f"The {role} table")
        cells = table.columns((*keys, *roles.features), as_text=keys)
        first = next(cells)[1] if keys else None
        count, order = rows if first is None else len(first), None
        if not count:
            raise InputError(f"The {role} table has no rows.")
        if original and first is None:
            cells = _checked(cells, rows)
            order = None if looked_at is None else pa.array(looked_at)
        elif original and key is not None:
            order = matching_rows(special[key], first, "original features")
        count = count if order is None else len(order)
        label = None if original or role == "held-out" else first
        found.append(Companion(role, table, count, cells, order, label))
    return tuple(found)


def _checked(columns: Columns, rows: int) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in columns:
        if len(column) != rows:
            raise InputError(
                f"The original features must have as many rows as the release: {len(column)} "
                f"against {rows}."
            )
        yield name, column


def encode_together(
    cells: Columns,
    rows: int,
    companions: Sequence[Companion],
    names: Sequence[str],
    files: FileOptions = AS_FOUND,
    expected: int = 0,
) -> tuple[EncodedFeatures, Parts]:
    """Code the feature columns of a release of ``names`` together with its companions'.

    ``expected``: how many of them hold numbers, as far as is known before they are read.
    """
    total = rows + sum(companion.rows for companion in companions)
    encoded = encode_features(_stacked(cells, companions, names, files), total, names, expected)
    parts, start = {}, rows
    for companion in companions:
        part = encoded.part(start, start + companion.rows)
        parts[companion.role] = (companion, part.table())
        start += companion.rows
    return encoded.part(0, rows) if companions else encoded, parts


def _stacked(
    cells: Columns, companions: Sequence[Companion], names: Sequence[str], files: FileOptions
) -> Iterator[tuple[str, pa.ChunkedArray]]:
    readers = [ColumnReader.of(companion.table, files) for companion in companions]
    for name, column in cells:
        columns = [column]
        with of_column(name, names):
            for companion, read in zip(companions, readers, strict=True):
                other, _ = read(name, next(companion.columns)[1])
                if is_any(column.type, *NUMBERS) and is_any(value_type(other.type), *TEXTS):
                    other = read.numbers(other)
                columns.append(other if companion.order is None else other.take(companion.order))
            joined = joined_values(columns) if companions else column
        yield name, joined
        del column, columns, joined  # Else two are in memory while the next one is read.


def joined_values(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return columns of one kind of values one after the other (ColumnError)."""
    try:
        target = _common([column.type for column in columns])
        columns = [_cast(column, target) for column in columns]
    except pa.ArrowException:
        raise ColumnError(
            "must hold the same kind of values in the release and in its companion tables."
        ) from None
    return pa.chunked_array(list(chain.from_iterable(c.chunks for c in columns)), target)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    if not pa.types.is_dictionary(kind):
        return column.cast(kind)
    if pa.types.is_dictionary(column.type):
        values = [chunk.dictionary.cast(kind.value_type) for chunk in column.chunks]
        places = [chunk.indices.cast(kind.index_type) for chunk in column.chunks]
        chunks = map(pa.DictionaryArray.from_arrays, places, values)
        return pa.chunked_array(chunks, kind)
    return decoded(column).cast(kind.value_type).dictionary_encode().cast(kind)


def _common(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return a type that holds the values of all types; a column of missing values has any."""
    kinds = [kind for kind in dict.fromkeys(types) if not pa.types.is_null(kind)] or types[:1]
    if len(kinds) == 1:
        return kinds[0]
    values = [value_type(kind) for kind in kinds]
    if values != kinds and all(is_any(kind, *VALUES) for kind in values):
        # Categories of numbers or times: whether they are that, the release says.
        common = _common(values)
        return pa.dictionary(pa.int32(), common) if pa.types.is_dictionary(kinds[0]) else common
    if all(map(is_categorical, kinds)):
        text = pa.large_string()
        return text if values == kinds else pa.dictionary(pa.int32(), text)
    if all(is_any(kind, "date", "timestamp") for kind in kinds):
        zones = [getattr(kind, "tz", None) for kind in kinds]
        if len({zone is None for zone in zones}) > 1:
            raise pa.ArrowInvalid("times with a zone and without one")
        fine = any(getattr(kind, "unit", "") == "ns" for kind in kinds)
        return pa.timestamp("ns" if fine else "us", zones[0])
    whole = all(map(pa.types.is_integer, kinds))
    if not whole and all(is_any(kind, *NUMBERS, "boolean") for kind in kinds):
        return pa.float64()
    schemas = [pa.schema([("", kind)]) for kind in kinds]
    with suppress(pa.ArrowException):
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    return kinds[0]


def with_companions(release: Release, parts: Parts) -> tuple[Release, LabelledRows | None]:
    """Return the release with its tables, and the test rows; labels are classes (InputError)."""
    tables: dict[str, Any] = {}
    test: LabelledRows | None = None
    for role, (companion, features) in parts.items():
        if companion.label is None:
            tables[role.replace("-", "_")] = features
        elif role != "test":
            tables[role] = SyntheticTable(features, _codes(companion, release))
        elif release.numeric is not None:
            test = LabelledRows(features, numbers=read_numbers(companion.label, role))
        else:
            test = LabelledRows(features, _codes(companion, release))
    return replace(release, **tables), test


def _codes(companion: Companion, release: Release) -> IntArray:
    assert companion.label is not None
    labels = read_labels(companion.label, companion.role, from_text=companion.table.text)
    which = f"label of the {companion.role} table"
    return labels.coded(release.classes, which, f"the release's {len(release.classes)} classes")
