"""How cells are written: what a text file shows to everybody, and reading it as numbers loses.

In: a table, and what its feature columns were read as. Out: marks of each row beside the features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ldpaudit.datasets.formats.tables import TEXTS, TableSource, is_any
from ldpaudit.release import FeatureTable, Float32Array
from ldpaudit.release.features import ColumnSurvey

# What text files write for a missing value.
MISSING: Final = tuple(dict.fromkeys(("", *pyarrow.csv.ConvertOptions().null_values)))
# So many rows are looked at, from the first on: more show the same.
MOST_ROWS_SURVEYED: Final = 200_000
_MOST_SHAPES: Final = 50
# Digits, small and large letters each count as one sign: what is left is the way of writing.
_SHAPES: Final = ((r"[0-9]+", "0"), (r"[a-z]+", "a"), (r"[A-Z]+", "A"))


def with_spelling(
    features: FeatureTable, table: TableSource, surveys: Sequence[ColumnSurvey]
) -> FeatureTable:
    """Add marks of how cells are written where they were read as numbers, dates or truth values.

    ``surveys``: of the feature columns, with their places among the arrays.
    """
    asked = {
        one.name: one.arrays[0]
        for one in surveys
        if one.arrays and (one.reading.kind or table.text)
    }
    if not asked:
        return features
    kinds = {field.name: field.type for field in table.schema}
    surveyed = {one.name: one for one in surveys}
    marks, sources = list[Float32Array](), list[tuple[int, str]]()
    quoted = table.quoted_cells()
    for name, cells in first_cells(table, list(asked)):
        typed = bool(surveyed[name].reading.kind) or not is_any(kinds[name], *TEXTS)
        ways = ways_of_writing(cells) if typed else ()
        marks_of = [*ways, *marks_of_missing(cells)]
        own = None if quoted is None else quoted[:, list(table.names).index(name)]
        if own is not None and own.any() and not own.all():
            marks_of.append(("whether it stands in quotes", own.astype(np.float32)))
        for kind, mark in marks_of:
            of_all = np.full(len(features), np.nan, dtype=np.float32)
            of_all[: len(mark)] = mark[: len(features)]
            marks.append(of_all)
            sources.append((asked[name], kind))
    if not marks:
        return features
    known = [] if features.marks is None else [features.marks]
    return replace(
        features,
        marks=np.column_stack([*known, *marks]),
        mark_sources=(*features.mark_sources, *sources),
    )


def first_cells(table: TableSource, names: list[str]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the first cells of columns as they are written."""
    batches, rows = list[pa.RecordBatch](), 0
    for batch in table.written(names):
        batches.append(batch.slice(0, MOST_ROWS_SURVEYED - rows))
        rows += len(batches[-1])
        if rows >= MOST_ROWS_SURVEYED:
            break
    for place, name in enumerate(names):
        yield name, pa.chunked_array([batch.column(place) for batch in batches])


def ways_of_writing(cells: pa.ChunkedArray) -> Iterator[tuple[str, Float32Array]]:
    """Yield marks of how cells are written, float32 (n,), with what each says."""
    # What is the same in every row is left out.
    if not len(cells):
        return
    encoded = cells.cast(pa.large_string()).fill_null("").dictionary_encode().combine_chunks()
    texts, rows = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    shapes = texts
    for pattern, sign in _SHAPES:
        shapes = pc.replace_substring_regex(shapes, pattern, sign)
    shapes = shapes.dictionary_encode()
    codes = shapes.indices.to_numpy(zero_copy_only=False)[rows]
    if len(shapes.dictionary) > 1:
        order = np.argsort(-np.bincount(codes), kind="stable")
        ranks = np.empty(len(order))
        ranks[order] = np.arange(len(order))
        yield "how it is written", np.minimum(ranks, _MOST_SHAPES)[codes].astype(np.float32)
    point = pc.find_substring(texts, ".")
    behind = pc.subtract(pc.subtract(pc.utf8_length(texts), point), 1)
    decimals = pc.if_else(pc.less(point, 0), -1, behind).to_numpy(zero_copy_only=False)
    written = decimals[rows].astype(np.float32)
    if (written != written[0]).any():
        yield "number of decimals as written", written


def marks_of_missing(cells: pa.ChunkedArray) -> Iterator[tuple[str, Float32Array]]:
    """Yield which text stands for a missing value, float32 (n,), −1 for none, if several do."""
    encoded = cells.cast(pa.large_string()).fill_null("").dictionary_encode().combine_chunks()
    values = pa.array(MISSING, pa.large_string())
    of_texts = pc.index_in(encoded.dictionary, value_set=values).fill_null(-1)
    codes = of_texts.to_numpy(zero_copy_only=False)
    if len(np.unique(codes[codes >= 0])) > 1:
        rows = encoded.indices.to_numpy(zero_copy_only=False)
        yield "how a missing value is written", codes[rows].astype(np.float32)
