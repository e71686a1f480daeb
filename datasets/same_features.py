"""Do two releases say the same of a person's features?"""

import numpy as np
from scipy.sparse import coo_array

from ldpaudit.arrays import BoolArray, IndexArray, IntArray
from ldpaudit.release import FeatureTable, Release


def same_features(
    one: Release, two: Release, first: IndexArray, second: IndexArray
) -> BoolArray | None:
    """Return which of some rows have the same values in the columns that both releases have.

    Categories have codes of each release's own: the commonest partner of a code is the same value.

    Parameters
    ----------
    first, second : int64 arrays of shape (r,)
        Rows of the one release and of the other that belong together.

    Returns
    -------
    bool array of shape (r,) or None
        None where no column has the same name in both.
    """
    others = {column.name: column for column in two.columns}
    shared = [(c, others[c.name]) for c in one.columns if c.name in others]
    pairs = [
        (a, b)
        for c, d in shared
        if c.kind == d.kind and len(c.arrays) == len(d.arrays)
        for a, b in zip(c.arrays, d.arrays, strict=True)
        if a < one.features.width and b < two.features.width
    ]
    if not pairs:
        return None
    same = np.ones(len(first), dtype=bool)
    for a, b in pairs:
        same &= _same(one.features, two.features, (a, b), (first, second))
    return same


def _same(
    one: FeatureTable, two: FeatureTable, places: tuple[int, int], rows: tuple[IndexArray, ...]
) -> BoolArray:
    numeric = [
        place < table.numeric.shape[1] for place, table in zip(places, (one, two), strict=True)
    ]
    if all(numeric):
        a, b = one.numeric[rows[0], places[0]], two.numeric[rows[1], places[1]]
        return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))
    if any(numeric):
        return np.zeros(len(rows[0]), dtype=bool)
    a, b = (
        table.categorical[mine, place - table.numeric.shape[1]]
        for table, mine, place in zip((one, two), rows, places, strict=True)
    )
    return _same_category(a, b)


def _same_category(one: IntArray, two: IntArray) -> BoolArray:
    """Return where codes are partners: the commonest partner of each, by both sides."""
    a, b = one.astype(np.int64) + 1, two.astype(np.int64) + 1
    counts = coo_array((np.ones(len(a)), (a, b))).tocsr()
    forth = np.asarray(counts.argmax(axis=1)).reshape(-1)
    back = np.asarray(counts.argmax(axis=0)).reshape(-1)
    return np.asarray((forth[a] == b) & (back[b] == a))
