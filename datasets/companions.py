"""Tables that come with a release: original features; synthetic, test, held-out and public rows.

Their columns are put under those of the release before anything is coded, so that the same value
has the same code and the same number in all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ldpaudit.datasets.domains import read_numbers
from ldpaudit.datasets.features import EncodedFeatures, encode_features, is_categorical
from ldpaudit.datasets.formats.columns import is_any
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.tables import TableSource
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
Parts = Mapping[str, tuple["Companion", FeatureTable]]
"""The tables that come with a release, by role, and their coded features."""


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
    cells: Columns, rows: int, companions: Sequence[Companion], names: Sequence[str]
) -> tuple[EncodedFeatures, Parts]:
    """Code the feature columns of a release of ``names`` together with its companions'."""
    total = rows + sum(companion.rows for companion in companions)
    encoded = encode_features(_stacked(cells, companions, names), total, names)
    parts, start = {}, rows
    for companion in companions:
        part = encoded.part(start, start + companion.rows)
        parts[companion.role] = (companion, part.table())
        start += companion.rows
    return encoded.part(0, rows) if companions else encoded, parts


def _stacked(
    cells: Columns, companions: Sequence[Companion], names: Sequence[str]
) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in cells:
        columns = [column]
        for companion in companions:
            other = next(companion.columns)[1]
            columns.append(other if companion.order is None else other.take(companion.order))
        with of_column(name, names):
            joined = _joined(columns) if companions else column
        yield name, joined


def _joined(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    kinds, target = {column.type for column in columns}, columns[0].type
    if len(kinds) > 1:
        if all(is_categorical(kind) for kind in kinds):
            target = pa.large_string()
        elif all(is_any(kind, "integer", "floating", "boolean", "null") for kind in kinds):
            target = pa.float64()
        try:
            columns = [column.cast(target) for column in columns]
        except pa.ArrowException:
            raise ColumnError(
                "must hold the same kind of values in the release and in its companion tables."
            ) from None
    return pa.chunked_array(list(chain.from_iterable(c.chunks for c in columns)), target)


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
