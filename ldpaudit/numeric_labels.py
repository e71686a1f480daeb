"""Labels that are numbers: how values become codes, fixed before any released label is seen."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import FloatArray, IntArray, Label
from ldpaudit.errors import InputError

# How far from a declared value a number may be, as a share of the values' span: single precision is
# allowed for.
_ROUNDING: Final = 1e-6
_SINGLE_PRECISION: Final = 2.0**-22


@dataclass(frozen=True)
class PossibleNumbers:
    """The numbers that a mechanism can release: those of a list or of a grid, in an interval.

    ``values``: all of them, in increasing order; ``step``: they are a whole number of steps from
    ``origin``; ``low`` and ``high``: beyond these there is none.
    """

    values: FloatArray | None = None
    origin: float = 0.0
    step: float | None = None
    low: float = -np.inf
    high: float = np.inf

    def hold(self, numbers: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which numbers can be released, as far as single precision can tell."""
        spread = np.abs(numbers) * _SINGLE_PRECISION
        if self.values is not None:
            middles = (self.values[1:] + self.values[:-1]) / 2
            nearest = self.values[np.searchsorted(middles, numbers, side="right")]
            gaps = np.diff(self.values)
            least = float(gaps.min()) if len(gaps) else 1.0
            slack = np.minimum(_ROUNDING * least + spread, least / 4)
            return np.asarray(np.abs(nearest - numbers) <= slack)
        known = (numbers >= self.low - spread) & (numbers <= self.high + spread)
        if self.step is not None:
            off = np.abs(
                numbers - self.origin - self.step * np.rint((numbers - self.origin) / self.step)
            )
            known &= off <= np.minimum(_ROUNDING * self.step + spread, self.step / 4)
        return np.asarray(known)

    def places(self, numbers: FloatArray) -> npt.NDArray[np.int64] | None:
        """Return which possible number each is, int64 (n,); None where all of a range are."""
        if self.values is not None:
            middles = (self.values[1:] + self.values[:-1]) / 2
            return np.searchsorted(middles, numbers, side="right").astype(np.int64)
        if self.step is None:
            return None
        return np.rint((numbers - self.origin) / self.step).astype(np.int64)


@dataclass(frozen=True)
class NumericCoding:
    """How numbers become codes 0 … c − 1: each its own value, or bins."""

    names: tuple[Label, ...]
    """What each code is called."""
    values: FloatArray | None
    """Float64 array of shape (c,) or None: the number of each code, in increasing order; None for
    bins."""
    edges: FloatArray
    """Float64 array of shape (c − 1,): for bins, increasing: code 0 is up to and with the first, …,
    code c − 1 above the last."""
    low: float = -np.inf
    high: float = np.inf
    """``low`` and ``high``: numbers outside have no code."""
    possible: PossibleNumbers | None = None
    """Numbers that are none of these have no code, either; None where any may occur."""

    @classmethod
    def of_values(cls, names: tuple[Label, ...]) -> "NumericCoding":
        """Give each of some increasing numbers a code of its own."""
        return cls(names, np.asarray(names, dtype=np.float64), np.empty(0))

    @classmethod
    def of_bins(
        cls,
        edges: FloatArray,
        low: float = -np.inf,
        high: float = np.inf,
        possible: PossibleNumbers | None = None,
    ) -> "NumericCoding":
        """Give each bin between increasing edges a code."""
        cuts = [f"{edge:.10g}" for edge in edges]
        inner = [f"{a} to {b}" for a, b in pairwise(cuts)]
        names = (f"up to {cuts[0]}", *inner, f"above {cuts[-1]}")
        return cls(names, None, np.asarray(edges, dtype=np.float64), low, high, possible)

    @property
    def grouped(self) -> bool:
        """Whether several numbers share a code."""
        return self.values is None

    def __len__(self) -> int:
        """Return the number of codes."""
        return len(self.names)

    def codes(self, numbers: FloatArray) -> IntArray:
        """Return the code of each number, int32 of shape (n,); −1 where it has none."""
        if self.values is None:
            codes = np.searchsorted(self.edges, numbers, side="left")
            known = (numbers >= self.low) & (numbers <= self.high)
            if self.possible is not None:
                known &= self.possible.hold(numbers)
        else:
            gaps, middles = np.diff(self.values), (self.values[1:] + self.values[:-1]) / 2
            codes = np.searchsorted(middles, numbers, side="right")
            slack = min(_ROUNDING * gaps.sum(), gaps.min() / 4)
            known = np.abs(self.values[codes] - numbers) <= slack
        return np.where(known, codes, -1).astype(np.int32)

    def merged(self, counts: npt.NDArray[np.int64], least: int) -> "NumericCoding":
        """Return bins that each hold at least ``least`` of the counted numbers.

        ``counts``, int64 array of shape (c,): how many true labels each bin holds. Released
        labels must not take part.
        """
        edges, held = [], 0
        for place, edge in enumerate(self.edges):
            held += int(counts[place])
            if held >= least:
                edges.append(edge)
                held = 0
        if edges and held + int(counts[-1]) < least:
            edges.pop()
        if not edges:
            raise InputError(
                f"The true labels must spread over the declared range; {least} rows or more in "
                "each of two groups are needed."
            )
        return NumericCoding.of_bins(np.array(edges), self.low, self.high)


@dataclass(frozen=True)
class NumericView:
    """How an audit sees numeric labels: the coding of the true and of the released ones."""

    classes: NumericCoding
    outputs: NumericCoding


@dataclass(frozen=True)
class NumericLabels:
    """Labels as numbers, in addition to their codes.

    ``released``, float64 array of shape (n,); ``truth``, float64 array of shape (n,) or None.
    """

    view: NumericView
    released: FloatArray
    truth: FloatArray | None = None

    def take(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> "NumericLabels":
        """Return the labels of the given rows."""
        truth = None if self.truth is None else self.truth[rows]
        return NumericLabels(self.view, self.released[rows], truth)
