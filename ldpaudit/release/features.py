"""Feature columns as arrays, how sparse ones were projected, and what a reader saw of each."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import Float32Array, IntArray
from ldpaudit.errors import InputError

_GLANCE: Final = 1_000


@dataclass(frozen=True)
class FeatureTable:
    """Feature columns as arrays, in two blocks; column names do not get this far.

    Attributes
    ----------
    numeric : float32 array of shape (n, d)
        Numeric and boolean columns and the entries of list-of-float columns; NaN where missing,
        never infinite.
    categorical : int32 array of shape (n, c)
        Codes of string and categorical columns, 0 … cardinality - 1; -1 where missing.
    cardinalities : tuple of int, length c
        The number of distinct values of each categorical column.
    columns : int
        The number of feature columns of the file (a list-of-float column counts as one).
    extra : float32 array of shape (n, e) or None
        What is read out of free texts and dates; only models that learn labels look at it.
    marks : float32 array of shape (n, m) or None
        What float32 does not keep of a value, or codes of a text: whether it is a float32, how many
        decimals it has, how long the text is. No model looks at it.
    mark_sources : tuple of (int, str), length m
        The array column that each mark is of, numeric ones first, and what it says.
    """

    numeric: Float32Array
    categorical: IntArray
    cardinalities: tuple[int, ...]
    columns: int
    extra: Float32Array | None = None
    marks: Float32Array | None = None
    mark_sources: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if len(self.numeric) != len(self.categorical):
            raise InputError("The numeric and the categorical block must have as many rows.")

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.numeric.shape[0])

    @property
    def width(self) -> int:
        """The number of array columns, numeric and categorical together."""
        return int(self.numeric.shape[1] + self.categorical.shape[1])

    def take(self, rows: npt.NDArray[Any]) -> "FeatureTable":
        """Return the table of the given rows (indices or a boolean mask)."""
        return replace(
            self,
            numeric=self.numeric[rows],
            categorical=self.categorical[rows],
            extra=None if self.extra is None else self.extra[rows],
            marks=None if self.marks is None else self.marks[rows],
        )

    def expanded(self) -> "FeatureTable":
        """Return the table with what is read out of texts and dates as numeric columns."""
        if self.extra is None:
            return self
        numeric = np.hstack([self.numeric, self.extra])
        return replace(self, numeric=numeric, extra=None, marks=None, mark_sources=())

    def without(self, columns: Collection[int]) -> "FeatureTable":
        """Return the table without some array columns, counted from 0, the numeric ones first."""
        # What is read out of texts and dates is then left out, too.
        if not columns:
            return self
        d, c = self.numeric.shape[1], self.categorical.shape[1]
        numeric = [j for j in range(d) if j not in columns]
        categorical = [j for j in range(c) if d + j not in columns]
        return FeatureTable(
            self.numeric[:, numeric],
            self.categorical[:, categorical],
            tuple(self.cardinalities[j] for j in categorical),
            max(self.columns - len(columns), 0),
        )

    def is_constant(self) -> bool:
        """Return whether no column tells any two rows apart."""
        if len(self) == 0 or self.width == 0:
            return True
        # Most tables answer by their first rows.
        parts = (slice(0, _GLANCE), slice(_GLANCE, None))
        return all(self._repeats_first(rows) for rows in parts)

    def _repeats_first(self, rows: slice) -> bool:
        numbers, first = self.numeric[rows], self.numeric[0]
        same = (numbers == first) | (np.isnan(numbers) & np.isnan(first))
        return bool(same.all()) and bool((self.categorical[rows] == self.categorical[0]).all())


@dataclass(frozen=True)
class Sketch:
    """How sparse features became a few numeric columns, without a look at any label.

    Attributes
    ----------
    features : int
        The largest index, counted from 0, and one more.
    single, shared : int
        Columns of one feature each, and columns in which all other features are summed with
        random signs; 0 shared ones where no other feature occurs.
    share : float
        The share of pairs of rows that ``bound`` and ``error`` speak of.
    error : float or None
        How far the squared distance of so large a share of the sampled pairs is off, relatively.
    pairs : int
        How many pairs were sampled.
    """

    features: int
    single: int
    shared: int
    share: float
    error: float | None
    pairs: int

    @property
    def bound(self) -> float:
        """How far the squared distance of a pair is off with probability 1 − share at most."""
        # Chebyshev's inequality with the relative variance of at most 2/b of b shared columns, over
        # random signs and places.
        return math.sqrt(2.0 / (self.shared * (1.0 - self.share))) if self.shared else 0.0


def joined(first: FeatureTable, second: FeatureTable) -> FeatureTable:
    """Return the rows of two tables with the same columns and codes, one after the other."""
    return replace(
        first,
        numeric=np.concatenate([first.numeric, second.numeric]),
        categorical=np.concatenate([first.categorical, second.categorical]),
        extra=(
            None
            if first.extra is None or second.extra is None
            else np.concatenate([first.extra, second.extra])
        ),
        marks=None,
        mark_sources=(),
    )


@dataclass(frozen=True)
class Reading:
    """How a column of text was read that holds numbers or dates but for some cells."""

    kind: Literal["", "number", "date", "text"] = ""
    """What it was read as; empty where it was read as it stands."""
    marks: int = 0
    """Cells with a known mark of a missing value."""
    others: int = 0
    """Filled cells that the reading cannot hold.

    Of a column read as text: those that are no numbers.
    """


ColumnKind = Literal["number", "category", "text", "date", "list", "nested"]
# Why a column may lead back to a person: it numbers the rows, names each, or holds free text or
# exact dates.
Concern = Literal["index", "identifier", "text", "date"]
# How a column is known to be from before the noise: the truth file holds it with equal values, an
# option or the policy names it, or the file's declaration does.
KnownBy = Literal["truth", "named", "declared"]


@dataclass(frozen=True)
class ColumnSurvey:
    """What one feature column is like."""

    name: str = field(repr=False)
    """For messages to the column's owner; never part of a result, unless names were asked for."""
    kind: ColumnKind
    distinct: float
    """Different values as a share of the (first 10,000) rows."""
    unique: bool = False
    """Whether every row has a value of its own."""
    ordered: bool = False
    """Whether the rows are sorted by it."""
    unused: int = 0
    """Values of its dictionary that no row has."""
    concern: Concern | None = None
    """Why it may lead back to a person."""
    arrays: tuple[int, ...] = ()
    """Its places among the arrays of the feature table, numeric ones first."""
    place: int = 0
    """Its place among the columns of the file, from 1; 0 where that is not known."""
    head: npt.NDArray[Any] | None = field(default=None, repr=False, compare=False)
    """Its (first 10,000) values as they are, where many differ and mean no measurement."""
    before: KnownBy | None = None
    """How it is known to be from before the noise; None where it is not."""
    reading: Reading = Reading()
    """How its text was read, where that was a guess."""
