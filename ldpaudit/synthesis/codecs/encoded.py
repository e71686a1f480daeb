"""Tables as generators see them: Gaussian numbers and codes of categories."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ldpaudit.release import Float32Array, IntArray


@dataclass(frozen=True)
class EncodedRows:
    """Feature rows in a form without units, names or missing values.

    Attributes
    ----------
    numbers : float32 array of shape (n, d)
        One column for each number of a row, each standard normal over the training rows.
    codes : int32 array of shape (n, c)
        One column for each categorical, boolean or missing-or-not variable.
    cardinalities : tuple of int, length c
        The number of codes of each; a code is below it and never negative.
    """

    numbers: Float32Array
    codes: IntArray
    cardinalities: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.numbers)

    @property
    def width(self) -> int:
        """The number of coordinates with one 0/1 coordinate for each code: d + Σ cardinalities."""
        return int(self.numbers.shape[1]) + sum(self.cardinalities)

    def take(self, rows: npt.NDArray[np.integer]) -> "EncodedRows":
        """Return the given rows."""
        return EncodedRows(self.numbers[rows], self.codes[rows], self.cardinalities)

    def flat(self) -> Float32Array:
        """Return numbers and 0/1 coordinates side by side, float32 of shape (n, width)."""
        out = np.zeros((len(self), self.width), dtype=np.float32)
        d = self.numbers.shape[1]
        out[:, :d] = self.numbers
        starts = d + np.cumsum([0, *self.cardinalities[:-1]])
        for column, start in enumerate(starts[: len(self.cardinalities)]):
            out[np.arange(len(self)), start + self.codes[:, column]] = 1.0
        return out


def split_rows(flat: Float32Array, d: int, sizes: tuple[int, ...]) -> EncodedRows:
    """Return numbers and, of each relaxed code, the largest entry: an exact draw (Gumbel-max)."""
    starts = d + np.cumsum([0, *sizes])
    codes = [flat[:, a:b].argmax(axis=1) for a, b in pairwise(starts)]
    empty = np.zeros((len(flat), 0), dtype=np.int32)
    stacked = np.stack(codes, axis=1).astype(np.int32) if codes else empty
    return EncodedRows(flat[:, :d], stacked, sizes)
