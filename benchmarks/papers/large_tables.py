"""Readers of the tables that Figure 2 uses, for who has the files: svmlight text, or CSV.

Sparse rows of millions of columns become short dense ones: columns are hashed into 2^18 signed
buckets, and a truncated SVD that is fitted on the first piece of the file keeps 32 directions. No
label is looked at, so a neighbour search on them costs smoothness and never validity.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file
from sklearn.decomposition import TruncatedSVD

from benchmarks.planted import table_of
from benchmarks.runner import Array
from ldpaudit.release import FeatureTable

PIECE = 1 << 28
"""Bytes of a text file that are read at once."""
DIRECTIONS = 32
_BUCKET_BITS = 18
_MOST_COLUMNS = 1 << 30
_FITTED_ROWS = 300_000


def read_large(path: Path, piece: int = PIECE) -> tuple[FeatureTable, Array]:
    """Return features and labels, int32 codes 0 and 1 in the order of the file's values.

    ``.csv`` and ``.csv.gz`` have no header, the label first; else svmlight text, so many bytes at
    once.
    """
    is_csv = ".csv" in path.suffixes
    x, labels = _read_csv(path) if is_csv else _read_svmlight(path, piece)
    values, codes = np.unique(labels, return_inverse=True)
    if len(values) != 2:
        raise SystemExit(f"The labels must have two values. Found {len(values)}.")
    return table_of(x), codes.astype(np.int32)


def _read_csv(path: Path) -> tuple[Array, Array]:
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    table = pyarrow.csv.read_csv(path, read_options=options)
    columns = [column.to_numpy().astype(np.float32) for column in table.columns[1:]]
    return np.stack(columns, axis=1), table.column(0).to_numpy()


def _read_svmlight(path: Path, piece: int) -> tuple[Array, Array]:
    directions: Any = None
    rows, labels = [], []
    for start in range(0, path.stat().st_size, piece):
        # A line belongs to the piece in which it begins.
        found, codes = load_svmlight_file(
            path, n_features=_MOST_COLUMNS, offset=start, length=piece, zero_based=True
        )
        if not found.shape[0]:
            continue
        found = _hashed(found)
        if directions is None:
            kept = min(DIRECTIONS, found.shape[0] - 1)
            directions = TruncatedSVD(kept, random_state=0).fit(found[:_FITTED_ROWS])
        rows.append(directions.transform(found).astype(np.float32))
        labels.append(codes)
    return np.concatenate(rows), np.concatenate(labels)


def _hashed(matrix: csr_matrix) -> csr_matrix:
    """Return the rows with columns hashed by an odd multiplier, their sign by one bit more."""
    mixed = matrix.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    buckets = (mixed >> np.uint64(64 - _BUCKET_BITS)).astype(np.int32)
    signs = 1.0 - 2.0 * ((mixed >> np.uint64(64 - _BUCKET_BITS - 1)) & np.uint64(1)).astype(float)
    shape = (matrix.shape[0], 1 << _BUCKET_BITS)
    return csr_matrix((matrix.data * signs, buckets, matrix.indptr), shape=shape)
