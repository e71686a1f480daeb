"""Square images in a list column as pixels between −1 and 1, and back."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.formats.columns import LISTS, is_any
from ldpaudit.errors import InputError
from ldpaudit.release import Float32Array, FloatArray, IntArray
from ldpaudit.synthesis.columns import (
    arrow_of,
    is_number,
    nearest_seen,
    numbers_of,
    seen_values,
)


@dataclass(frozen=True)
class Images:
    """The range of the pixels of one list column, and where each class is ever lit.

    Attributes
    ----------
    schema : pyarrow.Schema
        One list column.
    side : int
        s, where each list holds s² pixels.
    low, high : float
        The smallest and the largest pixel, which become −1 and 1.
    seen : float64 array of shape (v,)
        The pixel values that occur, where there are at most 256; else empty.
    lit : bool array of shape (k, s²)
        Where a class has pixels other than the smallest: the others stay black in its images.
    black : float64 array of shape (k,)
        The share of the smallest pixel in each class.
    cut : float64 array of shape (k,)
        The brightness up to which generated pixels are made black.
    """

    schema: pa.Schema
    side: int
    low: float
    high: float
    seen: FloatArray
    lit: IntArray
    black: FloatArray
    cut: FloatArray

    @classmethod
    def fit(cls, table: pa.Table, labels: IntArray, classes: int) -> "Images":
        """Learn the range of a table of images (InputError where it is none)."""
        side = image_side(table)
        if side is None:
            raise InputError(
                "A convolutional generator must have one column of lists of s² numbers, s ≥ 8, and "
                "no other feature column."
            )
        pixels = numbers_of(table.column(0))
        low, high = float(pixels.min()), float(pixels.max())
        bright = [pixels[labels == y] > low for y in range(classes)]
        lit = np.stack([some.any(axis=0) for some in bright])
        black = np.array([1 - some.mean() for some in bright])
        schema = table.schema.remove_metadata()
        return cls(
            schema,
            side,
            low,
            high,
            seen_values(pixels),
            lit.astype(np.int32),
            black,
            np.full(classes, -1.0),
        )

    def cut_off(self, made: Float32Array) -> "Images":
        """Return the same with cuts that make each class's images as black as its training images.

        A network's background is nearly black and nowhere exactly black. ``made`` has generated
        pixels of each class, of shape (k, m).
        """
        pairs = zip(made, self.black, strict=True)
        cut = [np.quantile(some, share) if share > 0 else -1.0 for some, share in pairs]
        return replace(self, cut=np.array(cut))

    def encode(self, table: pa.Table) -> Float32Array:
        """Return the fitted table's pixels, float32 of shape (n, s²)."""
        spread = max(self.high - self.low, np.finfo(np.float64).tiny)
        return (2 * (numbers_of(table.column(0)) - self.low) / spread - 1).astype(np.float32)

    def decode(self, pixels: Float32Array, labels: IntArray) -> pa.Table:
        """Return a table of the fitted schema from pixels of shape (m, s²)."""
        bright = (self.lit[labels] == 1) & (pixels > self.cut[labels][:, None])
        share = np.where(bright, (np.clip(pixels, -1, 1) + 1) / 2, 0.0)
        values = nearest_seen(self.low + share * (self.high - self.low), self.seen)
        present = np.zeros(len(values), dtype=np.int64)
        return pa.Table.from_arrays(
            [arrow_of(values, self.schema.field(0).type, present)], schema=self.schema
        )


def image_side(table: pa.Table) -> int | None:
    """Return s where the table is one full column of lists of s² numbers, s ≥ 8; else None."""
    kind = table.schema.field(0).type if table.num_columns == 1 else pa.null()
    column = table.column(0)
    if not (is_any(kind, *LISTS) and is_number(kind)) or not len(table) or column.null_count:
        return None
    try:
        width = numbers_of(column).shape[1]
    except InputError:
        return None
    side = math.isqrt(width)
    return side if side * side == width and side >= 8 else None
