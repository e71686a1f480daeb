"""Whether test rows are rows that a model is trained on: it knows those."""

import math
from typing import Final

import numpy as np

from ldpaudit.doors import FeatureTable, IndexArray, InputError, number
from ldpaudit.models.counts import hash_rows

_MOST, _NOTED = 0.5, 0.05
_SURELY: Final = 5.0
"""How many standard errors apart is too many for chance."""


def rows_inside(table: FeatureTable, test: FeatureTable) -> float:
    """Return the share of test rows that are the table's own; 0 where it is small, or not clear.

    Rows of different people may have equal features. But of N_1 combinations of features that one
    of n rows has, a row of somebody else has a new one with probability N_1/n (Good 1953, Eq. 2),
    and a row of the table never. InputError where most test rows are rows of the table.
    """
    own, theirs = hash_rows(table), hash_rows(test)
    values, counts = np.unique(own, return_counts=True)
    place = np.minimum(np.searchsorted(values, theirs), len(values) - 1)
    met = np.where(values[place] == theirs, counts[place], 0)
    share = _share_of_copies(counts, met)
    if share > _MOST:
        raise InputError(
            "The test rows must be of other people: most of them have the features of a row that "
            "the model is trained on. Give other rows, with their true labels."
        )
    return share if share > _NOTED else 0.0


def _share_of_copies(counts: IndexArray, met: IndexArray) -> float:
    """Return the share of test rows that are the table's own; 0 where it may be chance.

    ``counts``: how many rows of the table have each combination of features; ``met``: for each test
    row, how many rows of the table have its features.
    """
    n, t = int(counts.sum()), len(met)
    once, twice = (int(np.count_nonzero(counts == times)) for times in (1, 2))
    new, single = (float(np.mean(met == times)) for times in (0, 1))
    if once == 0 or t == 0:
        return 0.0
    # The variances of Good's estimates, and of shares of test rows.
    expected = once / n
    variance = max(_variance(expected, n, t), _variance(new, n, t))
    error = math.sqrt(variance + 2 * (twice + 1) / n**2)
    share = 1 - new / expected
    if expected - new <= _SURELY * error:
        return 0.0
    # People with common features only are rarely new, too; but they are no single rows either.
    singles = share * expected + (1 - share) * 2 * twice / n
    error = math.sqrt(_variance(singles, n, t) + 4 * (twice + 1) / n**2)
    return share if abs(single - singles) <= _SURELY * error else 0.0


def _variance(share: float, n: int, t: int) -> float:
    """Return the variance of the difference of a share in n rows and in t others."""
    return share * (1 - share) * (1 / n + 1 / t) + 1 / n**2 + 1 / t**2


def said_inside(share: float) -> str:
    """Return that a share of the test rows are rows of the table; nothing where none are."""
    if not share:
        return ""
    return (
        f"About {number(100 * share, digits=0)} % of the test rows have the features of a row that "
        "the model is trained on: it knows these, so what is said of it by the test rows is too "
        "good."
    )
