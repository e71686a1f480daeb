"""Bins for the values of one column of outputs, fitted on a sample.

Bin 0 is for what was never seen.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.commands.black_box.estimators.outputs import NUMERIC

Codes = npt.NDArray[np.uint16]

MOST_CATEGORIES = 64
_SHARES = np.concatenate(
    [[0.001, 0.003, 0.006], np.arange(1, MOST_CATEGORIES) / MOST_CATEGORIES, [0.994, 0.997, 0.999]]
)
"""Where bins of numbers end; the tails are cut finer, since ratios are largest there."""


@dataclass(frozen=True, eq=False)
class NumberBins:
    """Bins of numbers: frequent values on their own, the rest between quantiles.

    Attributes
    ----------
    values : array of shape (a,)
        Increasing; bin 1 + i holds values[i] alone.
    edges : array of shape (e,)
        Increasing; the rest of the numbers are in bins a + 1 … a + e + 1; empty where every value
        that was seen has a bin of its own.
    open_ended : bool
        Whether there are values without a bin of their own.
    """

    values: npt.NDArray[Any]
    edges: npt.NDArray[Any]
    open_ended: bool

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return 1 + len(self.values) + (len(self.edges) + 1 if self.open_ended else 0)

    def codes(self, column: npt.NDArray[Any]) -> Codes:
        """Return the bin of each number, uint16 of shape (n,)."""
        if column.dtype.kind not in NUMERIC:
            return np.zeros(len(column), dtype=np.uint16)
        codes = np.zeros(len(column), dtype=np.intp)
        if self.open_ended:
            codes = np.searchsorted(self.edges, column, side="right") + (1 + len(self.values))
        if len(self.values):
            place = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
            codes = np.where(self.values[place] == column, place + 1, codes)
        return codes.astype(np.uint16)

    def describe(self, code: int) -> str:
        """Return which numbers a bin holds."""
        if code == 0:
            return "any other"
        if code <= len(self.values):
            return f"= {self.values[code - 1]:.6g}"
        position = code - len(self.values) - 1
        low = f"{self.edges[position - 1]:.6g}" if position > 0 else "−∞"
        high = f"{self.edges[position]:.6g}" if position < len(self.edges) else "∞"
        return f"in [{low}, {high})"


@dataclass(frozen=True, eq=False)
class ValueBins:
    """A bin for each frequent value, of any hashable type."""

    positions: Mapping[Hashable, int]

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return 1 + len(self.positions)

    def codes(self, column: npt.NDArray[Any]) -> Codes:
        """Return the bin of each value, uint16 of shape (n,)."""
        get = self.positions.get
        return np.array([get(value, 0) for value in column.tolist()], dtype=np.uint16)

    def describe(self, code: int) -> str:
        """Return which value a bin holds."""
        if code == 0:
            return "any other"
        value = next(v for v, position in self.positions.items() if position == code)
        text = sorted(map(str, value)) if isinstance(value, frozenset) else value
        return f"= {text!r}"[:80]


def fit_binning(column: npt.NDArray[Any], most: int = MOST_CATEGORIES) -> NumberBins | ValueBins:
    """Fit bins to a sample of a column, of shape (n,): one for each of at most ``most`` values."""
    if column.dtype.kind in NUMERIC:
        return _number_bins(column, most)
    common = Counter(column.tolist()).most_common(most)
    return ValueBins({value: position + 1 for position, (value, _) in enumerate(common)})


def _number_bins(column: npt.NDArray[Any], most: int) -> NumberBins:
    if column.dtype.kind == "b":
        column = column.view(np.uint8)
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= most:
        return NumberBins(values, values[:0], False)
    frequent = counts >= len(column) / most
    rest = np.repeat(values[~frequent], counts[~frequent])
    edges = np.unique(np.quantile(rest, _SHARES, method="inverted_cdf"))
    return NumberBins(values[frequent], edges, True)
