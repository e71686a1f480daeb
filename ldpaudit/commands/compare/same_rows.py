"""Whether two released files hold the same people in the same order, judged by their features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.arrays import BoolArray
from ldpaudit.datasets.formats.columns import decoded, stored
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.options import AS_FOUND, FileOptions


def equal_rows(
    a: Any, b: Any, names: Sequence[str], files: FileOptions = AS_FOUND
) -> BoolArray | None:
    """Return which rows of two tables agree in all of some columns.

    Parameters
    ----------
    a, b : path or table
    names : sequence of str
        Columns of both.
    files : FileOptions
        How text files are written.

    Returns
    -------
    bool array of shape (n,) or None
        None where the tables differ in length, or no column can be compared.
    """
    both = (open_table(source, files).columns(tuple(names)) for source in (a, b))
    same: BoolArray | None = None
    for (_, ours), (_, theirs) in zip(*both, strict=True):
        if len(ours) != len(theirs):
            return None
        equal = _equal(ours, theirs)
        if equal is not None:
            same = equal if same is None else same & equal
    return same


def _equal(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> BoolArray | None:
    """Return where two columns agree, missing values included; None if they are not comparable."""
    x, y = _plain(ours), _plain(theirs)
    if x.type != y.type:
        x, y = _alike(x, y)
    try:
        equal = pc.fill_null(pc.equal(x, y), False)
        both = pc.and_(pc.is_null(x, nan_is_null=True), pc.is_null(y, nan_is_null=True))
    except pa.ArrowException:
        return _equal_lists(x, y)
    return np.asarray(pc.or_(equal, both).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    return decoded(stored(column)).combine_chunks()


def _alike(x: pa.Array, y: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return columns of different types as one type: numbers as doubles, else as text."""
    for kind in (pa.float64(), pa.large_string()):
        try:
            return x.cast(kind, safe=False), y.cast(kind, safe=False)
        except pa.ArrowException:
            continue
    return x, y


def _equal_lists(x: pa.Array, y: pa.Array) -> BoolArray | None:
    """Return where rows of lists of one length agree; None for other nested columns."""
    try:
        blocks = [np.asarray(pc.list_flatten(column)).reshape(len(column), -1) for column in (x, y)]
    except (pa.ArrowException, ValueError):
        return None
    if blocks[0].shape != blocks[1].shape or not blocks[0].shape[1]:
        return None
    return np.asarray((blocks[0] == blocks[1]).all(axis=1))
