"""A survey of feature columns: which number the rows, name a person, or hold texts or dates."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.as_read import ColumnReader
from ldpaudit.datasets.features import EncodedFeatures, is_categorical
from ldpaudit.datasets.formats.tables import (
    LISTS,
    comparable_values,
    is_any,
    plain_values,
    value_type,
    without_long_texts,
)
from ldpaudit.datasets.names import ColumnError, of_column
from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray
from ldpaudit.release.features import ColumnKind, ColumnSurvey, Concern

AS_FOUND: Final = ColumnReader()
# Rows that are looked at first: most questions are answered by them.
GLANCE: Final = 10_000
# With fewer rows a column may be unique by chance.
_FEWEST: Final = 50
_INDEX: Final = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
# Names of columns that hold a number or name of a person.
_IDENTIFIER: Final = re.compile(
    r"(^|[_\W])(id|ids|nbr|nr|no|num|number|key|uuid|guid|ssn|mrn|nhs|passport|email|e-mail|phone"
    r"|iban|account)$|[a-z]ID$|[a-z]Id$",
)
# So many different values may be the source of noise.
_MANY: Final = 300
# Different values, as a share of rows, from which such a name is believed.
_NAMED_SHARE: Final = 0.3
# Different texts, as a share of rows, from which they are taken for names: some may occur twice.
_NEARLY_ALL: Final = 0.98
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{4}")
# Texts with more different dates than this are exact ones.
_MOST_DATES: Final = 31
# Texts of at least so many words, on average, are free text …
_WORDS: Final = 3.0
# … where so large a share of them differ.
_TEXT_SHARE: Final = 0.2
# Values that are compared to see whether all differ.
_KEPT: Final = 1 << 22


def surveyed(
    cells: Iterable[tuple[str, pa.ChunkedArray]],
    found: list[ColumnSurvey],
    names: Sequence[str],
    read: ColumnReader = AS_FOUND,
) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the columns of a file of ``names`` as ``read`` reads them; add a survey of each."""
    for name, column in cells:
        with of_column(name, names):
            own, reading = read(name, column)
            survey = replace(survey_column(name, own), reading=reading)
        found.append(survey)
        yield name, own
        del column, own  # Else two are in memory while the next one is read.


def with_arrays(
    columns: Sequence[ColumnSurvey], encoded: EncodedFeatures
) -> tuple[ColumnSurvey, ...]:
    """Return surveys with the places of each column's arrays in the encoded table."""
    arrays: dict[int, list[int]] = {}
    for place, column in enumerate(encoded.columns_of_arrays()):
        arrays.setdefault(column, []).append(place)
    return tuple(
        replace(survey, arrays=tuple(arrays.get(i, ()))) for i, survey in enumerate(columns)
    )


def survey_left_out(
    cells: Iterable[tuple[str, pa.ChunkedArray]],
    names: Sequence[str],
    read: ColumnReader = AS_FOUND,
) -> tuple[ColumnSurvey, ...]:
    """Return surveys of columns that are in the file though no features; none if unreadable."""
    found: list[ColumnSurvey] = []
    with suppress(InputError):
        for _ in surveyed(cells, found, names, read):
            pass
    return tuple(found)


def survey_keys(
    columns: Mapping[str, pa.ChunkedArray], width: int, names: Sequence[str]
) -> tuple[ColumnSurvey, ...]:
    """Return surveys of ids and groups; their arrays come after the ``width`` ones of features.

    ``names``: all columns of the file (InputError where one cannot tell rows apart).
    """
    found = []
    for place, (name, column) in enumerate(columns.items(), width):
        with of_column(name, names):
            if not plain(column.type):
                raise ColumnError("must hold whole numbers, texts or dates, as ids and groups do.")
            found.append(replace(survey_column(name, column), arrays=(place,)))
    return tuple(found)


def ranks(column: pa.ChunkedArray) -> FloatArray:
    """Return the rank of each value of a column among its values, float64 of shape (n,)."""
    ranked = pc.rank(comparable_values(column).combine_chunks(), tiebreaker="dense")
    return np.asarray(ranked.to_numpy(zero_copy_only=False), dtype=np.float64)


def survey_column(name: str, column: pa.ChunkedArray) -> ColumnSurvey:
    """Return what a column is like: most of it by its first 10,000 rows."""
    column = without_long_texts(plain_values(column))
    rows, head = len(column), column.slice(0, GLANCE)
    if not plain(head.type) or not rows:
        lists = is_any(head.type, *LISTS, "list_view", "large_list_view")
        other: ColumnKind = "list" if lists else "nested"
        other = "number" if pa.types.is_null(head.type) else other
        return ColumnSurvey(name, other, 0.0)
    glance = comparable_values(head)
    share = pc.count_distinct(glance).as_py() / max(len(glance), 1)
    kind, whole = kind_of(glance, share), _is_whole(glance)
    # Measurements differ in each row, too, and mean nothing by it.
    may_be = rows >= _FEWEST and share == 1 and (kind != "number" or whole)
    every = comparable_values(column) if may_be or rises(glance) else glance
    unique = may_be and _is_unique(every)
    # Ids that some people lack tell all others apart.
    known, among = glance.drop_null(), share
    if max(_FEWEST, len(glance) / 2) <= len(known) < len(glance):
        among = pc.count_distinct(known).as_py() / len(known)
        different = among == 1 and (kind != "number" or whole)
        unique |= different and _is_unique(comparable_values(column).drop_null())
    # A name is believed where the values bear it out.
    believed = among >= _NAMED_SHARE and (kind != "number" or whole)
    indexed = believed and _INDEX.fullmatch(name) is not None
    named = believed and _IDENTIFIER.search(name) is not None and rows >= _FEWEST
    named |= kind == "category" and among >= _NEARLY_ALL and rows >= _FEWEST
    concern: Concern | None = None
    if indexed or (may_be and unique and kind == "number" and _counts_rows(every)):
        concern = "index"
    elif kind in ("text", "date"):
        concern = kind
    elif unique or named:
        concern = "identifier"
    ordered = rows > 1 and rises(glance) and rises(every)
    many = share * len(glance) >= _MANY and (kind != "number" or whole)
    values = glance.to_numpy() if many else None
    return ColumnSurvey(name, kind, share, unique, ordered, _unused(column), concern, head=values)


def _is_unique(column: pa.ChunkedArray) -> bool:
    """Return whether every row has a value of its own; of very many rows by those of a part."""
    part = -(-len(column) // _KEPT)
    if part <= 1:
        return bool(pc.count_distinct(column).as_py() == len(column))
    import pandas as pd

    if not is_any(column.type, "integer", "floating"):
        column = column.cast(pa.large_binary() if is_any(column.type, "binary") else pa.string())
    hashed = [
        pd.util.hash_array(chunk.to_numpy(False), categorize=False) for chunk in column.chunks
    ]
    some = np.concatenate([chunk[chunk % np.uint64(part) == 0] for chunk in hashed])
    return len(np.unique(some)) == len(some)


def plain(kind: pa.DataType) -> bool:
    """Return whether the values of a column can be compared with each other."""
    return not (
        pa.types.is_nested(value_type(kind)) or is_any(value_type(kind), "list_view", "null")
    )


def kind_of(glance: pa.ChunkedArray, share: float) -> ColumnKind:
    """Return what the first rows hold, of which ``share`` are different values."""
    if is_any(glance.type, "date", "timestamp"):
        try:  # Days that are more exact than a month.
            exact = pc.any(pc.not_equal(pc.day(glance), 1)).as_py()
        except pa.ArrowException:
            exact = True
        return "date" if exact else "number"
    if not is_categorical(glance.type):
        return "number"
    if not is_any(glance.type, "string", "large_string", "string_view"):
        return "category"
    texts = [text for text in glance.slice(0, 1000).to_pylist() if text]
    dated = [_DATE.fullmatch(text) is not None for text in texts]
    if texts and np.mean(dated) > 0.95:
        return "date" if share * len(glance) > _MOST_DATES else "category"
    words = np.mean([len(text.split()) for text in texts]) if texts else 0.0
    return "text" if words >= _WORDS and share >= _TEXT_SHARE else "category"


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Return whether all numbers are whole, as those of an identifier are."""
    if is_any(column.type, "integer"):
        return True
    if pa.types.is_decimal(column.type):  # Beyond the integers of 64 bits.
        return pc.all(pc.equal(pc.floor(column), column)).as_py() is True
    if not is_any(column.type, "floating"):
        return False
    values = column.drop_null().to_numpy()
    return bool(len(values)) and bool((values == np.floor(values)).all())


def _counts_rows(column: pa.ChunkedArray) -> bool:
    """Return whether a column counts 0, 1, 2 … or 1, 2, 3 … from row to row."""
    for part in (column.slice(0, 1000), column):
        if part.null_count:
            return False
        values = part.to_numpy()
        if values[0] not in (0, 1) or not (np.diff(values) == 1).all():
            return False
    return True


def rises(column: pa.ChunkedArray) -> bool:
    """Return whether no value is below the one before it, and not all are the same."""
    if column.null_count or len(column) < 2:
        return False
    try:
        ends = pc.min_max(column)  # As Python's values they could be out of its range.
        steps = pc.less_equal(column.slice(0, len(column) - 1), column.slice(1))
    except pa.ArrowException:
        return False
    return not ends["min"].equals(ends["max"]) and bool(pc.all(steps).as_py())


def _unused(column: pa.ChunkedArray) -> int:
    """Return how many values of a dictionary no row has."""
    if not pa.types.is_dictionary(column.type) or not len(column):
        return 0
    whole = column.unify_dictionaries().combine_chunks()
    chunk = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    used: int = pc.count_distinct(chunk.indices.drop_null()).as_py()
    return len(chunk.dictionary) - used
