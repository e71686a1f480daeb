"""Tables that come with a release: true labels, original features, synthetic and other rows."""

# Each is in the release's row order, joined on an id, or of rows of its own. Features are put under
# those of the release before anything is coded, so that the same value has the same code in all of
# them. Warnings go into reports, so they give a column's number, not its name.

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.as_read import ColumnReader
from ldpaudit.datasets.declaration import check_true_labels
from ldpaudit.datasets.domains import EncodedLabels, read_numbers
from ldpaudit.datasets.features import EncodedFeatures, encode_features, is_categorical
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.registered import open_sparse
from ldpaudit.datasets.formats.tables import (
    BYTES,
    NUMBERS,
    TEXTS,
    VALUES,
    MemoryTable,
    TableSource,
    bare_column,
    comparable_values,
    decoded,
    is_any,
    value_type,
)
from ldpaudit.datasets.labels import (
    RELEASED,
    LabelColumn,
    nearly_alike,
    positions,
    read_labels,
)
from ldpaudit.datasets.names import (
    DEFAULT_LABEL,
    ColumnError,
    Roles,
    called,
    missing_column,
    of_column,
    quoted,
)
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import (
    FeatureTable,
    FloatArray,
    IntArray,
    Release,
    SyntheticTable,
    label_table,
)

_GLANCE: Final = 1000


class UnknownIdError(InputError):
    """Ids of the release that another table does not have."""


@dataclass(frozen=True)
class Truth:
    """The true labels in the release's row order.

    ``labels`` are numbers, float64 (n,), for a mechanism on numbers; ``column`` is the name of
    theirs, None for a bare array; ``unused`` counts the rows that belong to no row of the
    release; ``remark`` says how the file was read, where that is not as usual. ``table`` is where
    they were read, with the columns in ``as_text`` as texts; None for a column of the release.
    ``order``, int64 (n,): the row of the table that each row is; None: the same row. ``sampled``:
    whether only these rows of the release are read.
    """

    labels: LabelColumn | FloatArray
    column: str | None
    unused: int = 0
    remark: str = ""
    table: TableSource | None = None
    order: npt.NDArray[np.int64] | None = None
    as_text: tuple[str, ...] = ()
    sampled: bool = False


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """The rows of a release that true labels are read for."""

    count: int
    label: str
    """The column of the released labels."""
    id_column: str | None = None
    """The column of the ids, None where rows are joined by their order."""
    identifiers: pa.ChunkedArray | None = None
    """The ids of the rows, where there are some."""
    looked_at: npt.NDArray[np.int64] | None = None
    """The places of the rows that are read of the release, None for all."""


def read_truth(
    source: Any,
    release: ReleasedRows,
    *,
    truth_column: str | None = None,
    numeric: bool = False,
    files: FileOptions = AS_FOUND,
) -> Truth:
    """Read the true labels of a release.

    A bare array or Series is in the release's row order, as is a table without the release's ids.
    Labels are in ``truth_column``; default: the column called as that of the released labels, else
    ``"label"``, else the only one that is not the id. ``numeric``: whether the mechanism is one on
    numbers.
    """
    id_column, looked_at, rows = release.id_column, release.looked_at, release.count
    table, bare = open_truth(source, files)
    identifiers = None if bare else release.identifiers
    join = identifiers is not None
    if bare:
        name = table.names[0]
    else:
        name = _column(table.names, release.label, truth_column, id_column, join)
    wanted = [name, id_column] if join and id_column is not None else [name]
    values, *others = [column for _, column in table.columns(wanted, as_text=wanted)]
    unused, order = 0, None
    if identifiers is not None:
        order = matching_rows(identifiers, others[0])
        values, unused = values.take(order), len(values) - rows
    elif len(values) != rows:
        raise InputError(
            f"The true labels must have as many rows as the release: {len(values)} against {rows}."
        )
    elif looked_at is not None:
        order = pa.array(looked_at)
        values = values.take(order)
    read = Truth(
        true_labels(values, numeric=numeric, from_text=table.text),
        name,
        unused,
        table.remark,
        table,
        None if order is None else order.to_numpy().astype(np.int64),
        tuple(wanted[1:]),
        sampled=looked_at is not None,
    )
    return replace(read, column=None, table=None) if bare else read


def true_labels(
    column: pa.ChunkedArray, *, numeric: bool, from_text: bool
) -> LabelColumn | FloatArray:
    """Read a column of true labels, as numbers for a mechanism on numbers."""
    if numeric:
        return read_numbers(column, "true")
    return read_labels(column, "true", from_text=from_text)


def open_truth(source: Any, files: FileOptions) -> tuple[TableSource, bool]:
    """Open a truth; a bare array or Series becomes a table of one column."""
    if not isinstance(source, str | os.PathLike | TableSource):
        column = bare_column(source)
        if column is not None:
            return MemoryTable(pa.table({DEFAULT_LABEL: column})), True
    sparse = open_sparse(source) if isinstance(source, str | os.PathLike) else None
    return (open_table(source, files) if sparse is None else sparse), False


def _column(
    names: Sequence[str],
    label: str,
    truth_column: str | None,
    id_column: str | None,
    join: bool,
) -> str:
    if join and id_column not in names:
        raise InputError(
            f"The truth must have the id column {quoted(str(id_column))} as well; privatize --id "
            "keeps it in --secret. If its rows have the release's order, leave out --id."
        )
    if truth_column is not None:
        if truth_column not in names:
            raise missing_column(truth_column, "true label", names)
        return truth_column
    found = named_truth(names, label)
    if found is not None or DEFAULT_LABEL in names:
        return found or DEFAULT_LABEL
    others = [name for name in names if name != id_column]
    if len(others) == 1:
        return others[0]
    raise InputError(
        f"The truth has {len(others)} columns and none is called as the released label; name the "
        f"column of the true labels (--truth-column)."
    )


def named_truth(names: Sequence[str], label: str) -> str | None:
    """Return the column called as the released label, or as sdcMicro called it before; or None."""
    called = (label, label.removesuffix(RELEASED))
    return next((name for name in called if name in names), None)


def matching_rows(
    identifiers: Any, other_ids: pa.ChunkedArray, other: str = "truth"
) -> pa.ChunkedArray:
    """Return for each row of the release the row of another table with the same id (InputError)."""
    ours, theirs = comparable_ids(identifiers, "release"), comparable_ids(other_ids, other)
    for ids, where in ((ours, "release"), (theirs, other)):
        repeated = len(ids) - pc.count_distinct(ids).as_py()
        if repeated:
            raise InputError(
                f"Ids must be distinct; {repeated:,} in the {where} are repeated. Where a person "
                "has several rows, give both tables a column that numbers the rows, and join them "
                "on that one."
            )
    if ours.type != theirs.type:
        raise UnknownIdError(
            f"The ids of the release and of the {other} must be written alike: those of one table "
            "are bytes, those of the other text or numbers."
        )
    order = pc.index_in(ours, value_set=theirs.combine_chunks())
    if order.null_count:
        missing = ours.filter(order.is_null())
        raise UnknownIdError(
            f"Every id of the release must be in the {other}; {order.null_count:,} of "
            f"{len(ours):,} are not.{_would_match(missing, theirs, other)}"
        )
    return order


# How ids of two tables may differ, and what removes that from a column of text.
_SPELLINGS: Final = (
    ("without zeros in front", lambda ids: pc.replace_substring_regex(ids, "^0+([0-9])", r"\1")),
    ("without spaces around them", pc.utf8_trim_whitespace),
    ("if upper and lower case were the same", pc.utf8_lower),
    ("without hyphens", lambda ids: pc.replace_substring(ids, "-", "")),
    ("without '.0' at the end", lambda ids: pc.replace_substring_regex(ids, r"\.0+$", "")),
    ("without quotes around them", lambda ids: pc.utf8_trim(ids, characters="'\"")),
)


def _would_match(missing: pa.ChunkedArray, known: pa.ChunkedArray, other: str) -> str:
    """Return a sentence about what would make ids match that are missing; empty if nothing does."""
    if not is_any(known.type, *TEXTS):
        return ""

    def found(change: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> int:
        there = pc.is_in(change(missing), value_set=change(known).combine_chunks())
        return int(pc.sum(there).as_py() or 0)

    matching = [(found(change), words) for words, change in _SPELLINGS]
    most, words = max(matching, key=lambda one: one[0])
    if not most:
        kinds = [
            pc.all(pc.match_substring_regex(ids, r"^[0-9]+$")).as_py() for ids in (missing, known)
        ]
        if kinds[0] != kinds[1]:
            numbered = "release" if kinds[0] else other
            return (
                f" Those of the {numbered} are numbers, the others are not: is it the same column?"
            )
        return ""
    which = "All" if most == len(missing) else f"{most:,}"
    return f" {which} of these would match {words}: write the ids of both tables alike."


def comparable_ids(ids: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Return ids as text, so that 7 in one file matches ``7`` in the other (but not ``07``).

    A whole number is itself, however it is written: 7.0, as pandas writes it after a merge, is 7.
    """
    ids = comparable_values(ids)
    try:
        if is_any(ids.type, "fixed_size_binary", *BYTES):
            ids = ids.cast(pa.large_binary())
        else:
            whole = ids.cast(pa.int64()) if pa.types.is_floating(ids.type) else ids
            ids = whole.cast(pa.large_string())
            if pc.all(pc.match_substring_regex(ids, r"^[+-]?(0|[1-9][0-9]*)\.0+$")).as_py():
                ids = pc.replace_substring_regex(ids, r"\.0+$", "")
    except pa.ArrowException:
        raise InputError(f"The ids of the {where} must be whole numbers or text.") from None
    if ids.null_count:
        raise InputError(f"Every row must have an id; {ids.null_count:,} of the {where} have none.")
    return ids


def warnings_about(
    truth: Truth | None,
    labels: EncodedLabels,
    features: EncodedFeatures,
    names: Sequence[str],
    roles: Roles,
) -> list[str]:
    """Return signs that the true labels were left in a release, or that files were mixed up."""
    values, warnings, number = labels.true_values, [], {n: j for j, n in enumerate(names, start=1)}
    before = roles.label.removesuffix(RELEASED)
    if truth is not None and values is not None:
        if truth.column in roles.features:
            warnings.append(
                f"Column {number[truth.column]} of the release has the name of the true label's "
                "column and is used as a feature: was the true label left in the release?"
            )
        for place in _revealing_columns(features, values):
            warnings.append(
                f"Column {number[roles.features[place]]} of the release determines the true label "
                "in every row: was the true label left in the release?"
            )
        if _equal(labels):
            warnings.append(
                "The true labels equal the released labels in every row: either nothing was "
                "privatized, or the release itself was given as the truth."
            )
        if labels.domains.apart:
            warnings.append(
                "No true label has the value of any released label; they were read as labels of "
                "two different kinds."
            )
        if truth.unused:
            warnings.append("Some rows of the truth match no row of the release and were left out.")
    classes = () if labels.numeric is not None else labels.domains.classes
    for alike in nearly_alike(classes):
        warnings.append(
            f"{alike}; they are kept apart, and the claim is read as one of {len(classes)} labels."
        )
    if before != roles.label and before in roles.features:
        warnings.append(
            f"Column {number[before]} of the release has the name that the private column had "
            "before it was post-randomized, and is used as a feature: were the true values left "
            "in the release?"
        )
    return warnings


def _revealing_columns(features: EncodedFeatures, truth: IntArray) -> list[int]:
    """Return the feature columns (numbers from 0) that map one to one to the true label."""
    columns: list[tuple[int, npt.NDArray[Any]]] = [
        (place, block[:, 0])
        for place, block in zip(features.numeric_places, features.numeric, strict=True)
        if block.shape[1] == 1
    ]
    columns += zip(features.categorical_places, features.categorical, strict=True)
    return sorted(
        place
        for place, values in columns
        # Most columns are ruled out by a few rows.
        if _one_to_one(values[:_GLANCE], truth[:_GLANCE]) and _one_to_one(values, truth)
    )


def _one_to_one(values: npt.NDArray[Any], truth: IntArray) -> bool:
    """Return whether equal values have equal labels and the other way round, in every row."""
    distinct, codes = np.unique(values, return_inverse=True)
    classes = len(np.unique(truth))
    if len(distinct) != classes:
        return False
    width = int(truth.max()) + 1
    return len(np.unique(codes.astype(np.int64) * width + truth)) == classes


def _equal(labels: EncodedLabels) -> bool:
    """Return whether every released label is the true one."""
    if labels.numeric is not None:
        truth = labels.numeric.truth
        return truth is not None and bool((labels.numeric.released == truth).all())
    if labels.truth is None:
        return False
    domains = labels.domains
    meaning = positions(domains.outputs, domains.classes)
    table = label_table(labels.truth, labels.released, len(domains.classes), len(domains.outputs))
    places, codes = np.nonzero(table)
    return bool((meaning[codes] == places).all())


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
