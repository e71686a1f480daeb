"""Features that hold the true number of some people, exactly or nearly.

A number that stands in a column for a few people, or a sum that is one person's, is no value that
decides a label: each is another. Asked is how close the column is to the true number, in rows that
anybody can tell apart: by gaps, by how finely the value is written, or by another column's value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.release import BoolArray, FloatArray

_CLOSE: Final = (0.002, 0.01, 0.05)
"""Shares of the range of labels at which a number is close to another."""
_PURE, _CERTAIN, _OPEN, _ALPHA = 0.98, 0.9, 0.5, 0.01
_FEWEST: Final = 20
_GAINED: Final = 0.4
"""How much more often than by chance a column must be close, as a part of the least share."""
_MOST_ASKED, _MOST_TELLING = 16, 64
"""Columns that are asked, the closest first, and that tell rows apart."""
_MOST_VALUES: Final = 30
"""Of a column with more values, no single ones tell rows apart."""
_STEPS: Final = tuple(10.0**power for power in range(-3, 5))


@dataclass(frozen=True)
class Close:
    """A column that is close to the true numbers of some people."""

    column: int
    by: int | None
    """The column whose value tells which people; None where it is told by the column itself."""
    share: float
    """Of the people."""
    right: float
    """The share of these of whom the column is close to the true number."""
    within: float
    """How close, as a share of the range of labels."""


def close_numbers(
    columns: Sequence[FloatArray],
    truth: FloatArray,
    width: float,
    rng: np.random.Generator,
    least: float = 0.01,
) -> list[Close]:
    """Return the columns that are close to the true numbers of a share ``least`` of the rows.

    Parameters
    ----------
    columns : sequence of float arrays of shape (n,), NaN where missing
    truth : float64 array of shape (n,)
    width : float
        Of the range of labels.
    rng : numpy.random.Generator
        For the numbers of other rows.
    least : float
        The smallest share of rows that is worth a word.

    Notes
    -----
    Counted in groups of rows that are fixed without the labels. At least 98 % of a group's numbers
    must be close, the one-sided Clopper–Pearson bound of that share 90 % at a level of 1 % for all
    groups; and of numbers of other rows of the group at most half.
    """
    n, other = len(truth), rng.permutation(len(truth))
    if n < _FEWEST or not width > 0:
        return []
    apart = [np.abs(column - truth) / width for column in columns]
    by_chance = [np.abs(column - truth[other]) / width for column in columns]
    gained = [
        max(np.mean(own <= within) - np.mean(chance <= within) for within in _CLOSE)
        for own, chance in zip(apart, by_chance, strict=True)
    ]
    worth = [i for i in np.argsort(gained)[::-1][:_MOST_ASKED] if gained[i] >= _GAINED * least]
    telling = [*worth, *(i for i in range(len(columns)) if i not in worth)][:_MOST_TELLING]
    groups = [(by, rows) for by in telling for rows in _groups(columns[by])]
    tried = max(len(groups) * len(worth) * len(_CLOSE), 1)
    found = list[Close]()
    for place in worth:
        best: Close | None = None
        for within in _CLOSE:
            close = apart[place] <= within
            for by, rows in groups:
                size, right = int(rows.sum()), int(close[rows].sum())
                small = size < max(_FEWEST, least * n, 0 if best is None else best.share * n + 1)
                if small or right < _PURE * size:
                    continue
                if float(clopper_pearson_lower(right, size, _ALPHA / tried)) < _CERTAIN:
                    continue
                # Of numbers that are alike in the group any column near them is close.
                mixed = np.abs(columns[place][rows] - rng.permutation(truth[rows])) / width
                if np.mean(mixed <= within) <= _OPEN:
                    own = None if by == place else int(by)
                    best = Close(int(place), own, size / n, right / size, within)
        if best is not None:
            found.append(best)
    return sorted(found, key=lambda one: -one.share)


def _groups(column: FloatArray) -> Iterator[BoolArray]:
    """Yield groups of rows that the column tells apart, bool (n,) each."""
    known = ~np.isnan(column)
    yield known
    values = np.unique(column[known])
    if len(values) <= _MOST_VALUES:
        for value in values:
            yield column == value
        return
    size = np.maximum(np.abs(column), 1.0)
    for step in _STEPS:
        places = column / step
        # In single precision a multiple is one to seven digits.
        multiple = known & (np.abs(places - np.rint(places)) * step <= 1e-6 * size)
        if 0 < multiple.sum() < known.sum():
            yield multiple
            yield known & ~multiple
