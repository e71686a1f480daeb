"""Square images in a list column as one channel of pixels between −1 and 1, and back."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.names import ColumnError
from ldpaudit.errors import InputError
from ldpaudit.release import Float32Array, FloatArray
from ldpaudit.synthesis.codecs.arrow_numbers import list_entries, lists_of, missing_codes
from ldpaudit.synthesis.codecs.numbers import nearest_seen, seen_values
from ldpaudit.synthesis.codecs.table import check_same_schema

SMALLEST_SIDE = 8


@dataclass(frozen=True)
class ImageCodec:
    """The range and the grid of the pixels of one list column.

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
    """

    schema: pa.Schema
    side: int
    low: float
    high: float
    seen: FloatArray

    @classmethod
    def fit(cls, table: pa.Table) -> "ImageCodec":
        """Learn the range of a table of n ≥ 1 images.

        Raises
        ------
        InputError
            If the table is not one list column of square images without missing entries.
        """
        side = image_side(table)
        if side is None:
            raise InputError(
                "A convolutional generator must have one column of lists of s² numbers, s ≥ 8, and "
                "no other feature column."
            )
        pixels = list_entries(table.column(0))
        if not np.isfinite(pixels).all():
            raise ColumnError("must be finite to be generated.")
        schema = table.schema.remove_metadata()
        return cls(schema, side, float(pixels.min()), float(pixels.max()), seen_values(pixels))

    def encode(self, table: pa.Table) -> Float32Array:
        """Return the pixels, float32 of shape (n, s²)."""
        check_same_schema(self.schema, table.schema, "The table")
        pixels = list_entries(table.column(0))
        spread = max(self.high - self.low, np.finfo(np.float64).tiny)
        return (2 * (pixels - self.low) / spread - 1).astype(np.float32)

    def decode(self, pixels: Float32Array) -> pa.Table:
        """Return a table of the fitted schema from pixels of shape (m, s²)."""
        share = (np.clip(pixels.astype(np.float64), -1, 1) + 1) / 2
        values = self.low + share * (self.high - self.low)
        if len(self.seen):
            values = nearest_seen(values, self.seen)
        return pa.Table.from_arrays(
            [lists_of(values, self.schema.field(0).type)], schema=self.schema
        )


def image_side(table: pa.Table) -> int | None:
    """Return s where the table is one column of lists of s² numbers, s ≥ 8, without missing rows.

    None where it is anything else.
    """
    if table.num_columns != 1 or table.num_rows == 0:
        return None
    column = table.column(0)
    kind = column.type
    if not hasattr(kind, "value_field") or (missing_codes(column) != 0).any():
        return None
    try:
        width = list_entries(column).shape[1]
    except (InputError, pa.ArrowException):
        return None
    side = math.isqrt(width)
    return side if side * side == width and side >= SMALLEST_SIDE else None
