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
from ldpaudit.datasets.formats.tables import TableSource
from ldpaudit.datasets.spelling import first_cells
from ldpaudit.release import FloatArray, IndexArray

# So many whole reports, and so many times as many as there would be by chance, are none.
_FEW: Final = 4
_FAR_MORE: Final = 10
# So many rows are looked at, from the first on.
_MOST_ROWS: Final = 200_000
# Of two numbers that differ by chance, 200,000 drawn from a range hold hardly any this near, as a
# part of the range; a sum's last digits differ by less.
_ROUNDING: Final = 1e-13


def otherwise_written(
    table: TableSource, name: str, column: pa.ChunkedArray, labels: EncodedLabels
) -> int:
    """Return how many of the first rows write their label otherwise than most rows that have it.

    ``column``: the released labels as they are stored, one a row; ``labels``: what they mean.
    Numbers that may be any of a range mean the same where only rounding tells them apart.
    """
    meanings = _meanings(labels)
    written = next(first_cells(table, [name]))[1] if table.text else column
    found = _unusual(meanings, _ways(written.slice(0, _MOST_ROWS)))
    quoted = table.quoted_cells() if table.text else None
    if quoted is None:
        return found
    in_quotes = quoted[:, list(table.names).index(name)].astype(np.int64)
    return max(found, _unusual(meanings, in_quotes))


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


def _meanings(labels: EncodedLabels) -> IndexArray:
    """Return a code of what each of the first rows' labels means, int64."""
    if labels.numeric is None or not labels.numeric.view.outputs.grouped:
        return labels.released[:_MOST_ROWS].astype(np.int64)
    numbers = labels.numeric.released[:_MOST_ROWS]
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


def _ways(cells: pa.ChunkedArray) -> IndexArray:
    """Return a code of how each cell is written, int64 (n,)."""
    if pa.types.is_floating(cells.type):
        bits = cells.cast(pa.float64()).to_numpy().view(np.int64)
        return np.unique(bits, return_inverse=True)[1].astype(np.int64)
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    codes = cells.dictionary_encode().combine_chunks().indices
    return np.asarray(codes.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _unusual(meanings: IndexArray, ways: IndexArray) -> int:
    """Return how many of the rows that both have are written otherwise than most of their label."""
    rows = min(len(meanings), len(ways))
    if not rows:
        return 0
    both = np.column_stack([meanings[:rows], ways[:rows]])
    pairs, counts = np.unique(both, axis=0, return_counts=True)
    firsts = np.flatnonzero(np.diff(pairs[:, 0], prepend=pairs[0, 0] - 1))
    return int(rows - np.maximum.reduceat(counts, firsts).sum())
