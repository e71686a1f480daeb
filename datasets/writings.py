"""Whether each released label is written in one way.

In: the cells of the released column, and the labels that were read from them. Out: how many rows
write a label otherwise than most rows with that label. What a cell shows besides its label no audit
looks at, and it may go with the true label: the last digits of ``y + (output - y)`` do.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from ldpaudit.arrays import stable_order
from ldpaudit.datasets.domains import EncodedLabels, Reports
from ldpaudit.datasets.formats.tables import TEXTS, TableSource, is_any
from ldpaudit.release import FloatArray, IndexArray, IntArray

_Codes = IntArray | IndexArray
# So many whole reports, and so many times as many as there would be by chance, are none.
_FEW: Final = 4
_FAR_MORE: Final = 10
# A table of labels by ways of writing with so many cells is counted cell by cell.
_MOST_CELLS: Final = 1 << 20
# Of two numbers that differ by chance, 200,000 drawn from a range hold hardly any this near, as a
# part of the range; a sum's last digits differ by less.
_ROUNDING: Final = 1e-13


def otherwise_written(
    table: TableSource,
    name: str,
    column: pa.ChunkedArray,
    labels: EncodedLabels,
    rows: IndexArray | None = None,
) -> int:
    """Return how many rows write their label otherwise than most rows that have it.

    ``column``: the released labels as they are stored, one a row; ``labels``: what they mean.
    Numbers that may be any of a range mean the same where only rounding tells them apart.
    ``rows``: those of the file that were read, in order; None for all.
    """
    meanings = _meanings(labels)
    kept_as_text = is_any(column.type, *TEXTS)
    ways = _ways(column) if kept_as_text or not table.text else _ways_in_file(table, name, rows)
    found = _unusual(meanings, ways)
    in_quotes = table.quoted_cells_of(name) if table.text else None
    if in_quotes is None:
        return found
    if rows is not None and len(in_quotes) > rows[-1]:
        in_quotes = in_quotes[rows]
    return max(found, _unusual(meanings, in_quotes.astype(np.int32)))


def whole_reports(reports: Reports) -> int:
    """Return how many reports are of whole numbers alone, where noise leaves hardly any so.

    ``reports``, of shape (n, d): where they are floats with noise of their own in each entry, a
    report of whole numbers is one that no noise was added to. 0 where chance may explain them.
    """
    if reports.dtype.kind != "f" or not len(reports):
        return 0
    whole = reports == np.round(reports)
    found = int(whole.all(axis=1).sum())
    by_chance = len(reports) * float(np.prod(whole.mean(axis=0)))
    return found if _FEW + _FAR_MORE * by_chance < found < len(reports) / 2 else 0


def _meanings(labels: EncodedLabels) -> _Codes:
    """Return a code of what each row's label means."""
    if labels.numeric is None or not labels.numeric.view.outputs.grouped:
        return labels.released
    numbers = labels.numeric.released
    possible = labels.numeric.view.outputs.possible
    places = None if possible is None else possible.places(numbers)
    return _but_for_rounding(numbers) if places is None else places


def _but_for_rounding(numbers: FloatArray) -> IndexArray:
    """Return a code of each number, the same where a sum or a product of others may differ so."""
    order = stable_order(numbers)
    gaps = np.diff(numbers[order], prepend=numbers[order[:1]])
    codes = np.empty(len(numbers), dtype=np.int64)
    codes[order] = np.cumsum(gaps > _ROUNDING * np.ptp(numbers))
    return codes


def _ways_in_file(table: TableSource, name: str, rows: IndexArray | None) -> IntArray:
    """Return a code of how each cell is written in a text file."""
    parts, done = list[pa.Array](), 0
    for batch in table.written([name]):
        cells = batch.column(0)
        if rows is not None:
            first, last = np.searchsorted(rows, (done, done + len(batch)))
            cells = cells.take(pa.array(rows[first:last] - done))
        done += len(batch)
        parts.append(cells.dictionary_encode())  # Else all texts would be in memory.
    encoded = pa.chunked_array(parts).unify_dictionaries().combine_chunks()
    return np.asarray(encoded.indices)


def _ways(cells: pa.ChunkedArray) -> IntArray:
    """Return a code of how each cell is written."""
    if pa.types.is_floating(cells.type):
        bits = cells.cast(pa.float64()).to_numpy().view(np.int64)
        return np.unique(bits, return_inverse=True)[1].astype(np.int32)
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)  # A dictionary may hold missing values.
    codes = cells.dictionary_encode().combine_chunks().indices
    return np.asarray(codes.fill_null(-1).to_numpy(zero_copy_only=False)) + 1


def _unusual(meanings: _Codes, ways: _Codes) -> int:
    """Return how many rows are written otherwise than most of their label.

    0 where not both are of the same rows: lines without cells, say.
    """
    rows = len(meanings)
    if rows != len(ways) or not rows:
        return 0
    width = int(ways.max()) + 1
    labels = meanings.astype(np.int64) - meanings.min()
    cells = (int(labels.max()) + 1) * width
    pairs = labels * width + ways
    if cells <= _MOST_CELLS:
        counts = np.bincount(pairs, minlength=cells).reshape(-1, width)
        return int(rows - counts.max(axis=1).sum())
    found, counts = np.unique(pairs, return_counts=True)
    firsts = np.flatnonzero(np.diff(found // width, prepend=-1))
    return int(rows - np.maximum.reduceat(counts, firsts).sum())
