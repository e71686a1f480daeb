"""Feature columns as coordinates of comparable size, decided on the features alone."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpaudit.release import Float32Array, IndexArray, IntArray

STANDARD_DEVIATIONS = 5.0
"""Standardised values are cut at ± this, so that one odd value does not outweigh all columns."""
MAX_LEVELS = 256
"""More levels than these, over all categorical columns, are merged, the rarest first."""
LEAST_SHARE = 0.0005
"""Where levels are merged at all, those on a smaller share of the rows are among them."""


@dataclass(frozen=True)
class NumericCoder:
    """Numeric columns, centred, scaled and cut, and a 0/1 coordinate where values are missing.

    Attributes
    ----------
    columns : int64 array of shape (d,)
        The columns that vary.
    flagged : int64 array of shape (f,)
        The columns with a coordinate for "missing".
    fill, center, scale : float32 arrays of shape (d,)
        What stands for a missing value, is subtracted, divides.
    limit : float
        Scaled values are cut at ± this.
    """

    columns: IndexArray
    flagged: IndexArray
    fill: Float32Array
    center: Float32Array
    scale: Float32Array
    limit: float

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return len(self.columns) + len(self.flagged)

    def write(self, numeric: Float32Array, points: Float32Array) -> None:
        """Write the coordinates of a numeric block into ``points``, float32 of (n, width)."""
        values = numeric[:, self.columns]
        values = np.where(np.isnan(values), self.fill, values)
        scaled = (values - self.center) / self.scale
        points[:, : len(self.columns)] = np.clip(scaled, -self.limit, self.limit)
        points[:, len(self.columns) :] = np.isnan(numeric[:, self.flagged])


@dataclass(frozen=True)
class CategoricalCoder:
    """Categorical columns, one 0/1 coordinate per level; "missing" is a level.

    Attributes
    ----------
    coordinates : tuple of int32 arrays
        For each column the coordinate of the codes −1, 0, 1 …; −1 for none.
    width : int
        The number of coordinates.
    merged : int
        How many levels share a coordinate with others because of their number.
    """

    coordinates: tuple[IntArray, ...]
    width: int
    merged: int

    def write(self, categorical: IntArray, points: Float32Array) -> None:
        """Write the coordinates of a categorical block into ``points``, float32 of (n, width)."""
        points[:] = 0.0
        for codes, coordinates in zip(categorical.T, self.coordinates, strict=True):
            where = coordinates[codes + 1]
            rows = np.flatnonzero(where >= 0)
            points[rows, where[rows]] = 1.0


def fit_numeric(numeric: Float32Array, *, standardise: bool) -> NumericCoder:
    """Return the coder of a numeric block of shape (n, d) with NaN where missing."""
    missing = np.isnan(numeric)
    some = np.flatnonzero(~missing.all(axis=0))
    spread = np.nanmax(numeric[:, some], axis=0) > np.nanmin(numeric[:, some], axis=0)
    columns = some[np.asarray(spread, dtype=np.bool_)]
    used = numeric[:, columns]
    center = np.zeros(len(columns), dtype=np.float32)
    scale = np.ones(len(columns), dtype=np.float32)
    flagged = np.empty(0, dtype=np.int64)
    limit = np.inf
    if standardise:
        center = np.asarray(np.nanmean(used, axis=0, dtype=np.float64), dtype=np.float32)
        scale = np.asarray(np.nanstd(used, axis=0, dtype=np.float64), dtype=np.float32)
        scale[scale == 0] = np.finfo(np.float32).tiny
        flagged = some[missing[:, some].any(axis=0)]
        limit = STANDARD_DEVIATIONS
    return NumericCoder(columns, flagged, _medians(used), center, scale, limit)


def _medians(numeric: Float32Array) -> Float32Array:
    """Return the median of each column without its missing values, 0 for a column without any."""
    if not np.isnan(numeric).any():
        return np.zeros(numeric.shape[1], dtype=np.float32)
    return np.nanmedian(numeric, axis=0).astype(np.float32)


def fit_categorical(categorical: IntArray, cardinalities: tuple[int, ...]) -> CategoricalCoder:
    """Return the coder of a categorical block of shape (n, c), at most 256 levels and c rests."""
    pairs = zip(categorical.T, cardinalities, strict=True)
    counts = [np.bincount(codes + 1, minlength=size + 1) for codes, size in pairs]
    least = _least_count(counts, len(categorical))
    coordinates, width = [], 0
    for count in counts:
        own, width = _coordinates(count, least, width)
        coordinates.append(own)
    merged = sum(int(((count > 0) & (count < least)).sum()) for count in counts)
    return CategoricalCoder(tuple(coordinates), width, merged)


def _least_count(counts: list[npt.NDArray[np.int64]], n: int) -> int:
    """Return how many rows a level must have for a coordinate of its own."""
    present = np.sort([size for count in counts for size in count.tolist() if size > 0])
    if len(present) <= MAX_LEVELS:
        return 1
    return int(max(present[-MAX_LEVELS - 1] + 1, np.ceil(LEAST_SHARE * n)))


def _coordinates(count: npt.NDArray[np.int64], least: int, first: int) -> tuple[IntArray, int]:
    """Return the coordinate of each code of one column, and the first that is free after it."""
    kept = np.flatnonzero(count >= least)
    rest = bool(((count > 0) & (count < least)).any())
    if len(kept) + rest < 2:
        return np.full(len(count), -1, dtype=np.int32), first
    coordinates = np.full(len(count), first + len(kept) if rest else -1, dtype=np.int32)
    coordinates[kept] = np.arange(first, first + len(kept))
    return coordinates, first + len(kept) + rest
