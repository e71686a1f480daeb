"""Which record is closest to a row, and which rows are equal."""

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.release import BoolArray, Float32Array, IndexArray


def closest(rows: Float32Array, records: Float32Array, k: int) -> tuple[Float32Array, IndexArray]:
    """Return squared distances to the k closest records and their indices, each of shape (m, k).

    Coordinates far from 0 are centred first: squares of large numbers would swallow differences.
    """
    import faiss

    centre = records.mean(axis=0, dtype=np.float64)
    asked, among = (np.ascontiguousarray(x - centre, dtype=np.float32) for x in (rows, records))
    distances, indices = faiss.knn(asked, among, k)
    return distances, indices


def exact_copies(rows: Float32Array, records: Float32Array) -> BoolArray:
    """Return which rows are exactly equal to some record; two missing values are equal."""
    return np.isin(row_keys(rows), row_keys(records))


def row_keys(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.void]:
    """Return one key for each row, equal where the rows are."""
    plain = np.where(np.isnan(matrix), np.float32(np.nan), matrix + np.float32(0.0))
    plain = np.ascontiguousarray(plain, dtype=np.float32)
    return plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1])))[:, 0]


def check_points(*blocks: Float32Array) -> None:
    """Raise InputError unless the blocks have the same coordinates, all finite."""
    if len({block.shape[1] for block in blocks}) > 1 or blocks[0].shape[1] == 0:
        raise InputError("Training, held-out and synthetic rows must have the same coordinates.")
    if not all(np.isfinite(block).all() for block in blocks):
        raise InputError("The coordinates must be finite; code missing values as numbers first.")
