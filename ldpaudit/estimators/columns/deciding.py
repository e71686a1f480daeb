"""Values of a column that decide the label of the people who have them, though others stay open."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray, IntArray
from ldpaudit.estimators.columns.telling import Values

LEAST_SHARE: Final = 0.01
"""A column that decides the labels of fewer people is not worth a word; a policy may set another
limit."""
_PURE: Final = 0.98
"""The share of a value's rows that must have its label."""
_OPEN: Final = 0.85
"""A label that more of the other rows have, or of those with the same released label, is no
surprise."""
_ERROR: Final = 0.001
"""Of all values of a column together."""
_FEWEST: Final = 20
_FEWEST_LEARNT: Final = 5
_CHOSEN: Final = 0.01
_WINDOW: Final = (50, 1000)
"""The fewest and the most rows with smaller or larger numbers that a number is compared with."""


@dataclass(frozen=True)
class Decided:
    """What the values of a column decide.

    Attributes
    ----------
    share : float
        Of the rows: those with a value that decides their label.
    values : int
        How many such values there are.
    """

    share: float
    values: int


def decided(values: Values, labels: IntArray, released: IntArray) -> Decided:
    """Return the share of people whose value in a column decides their label.

    Values are chosen on one half of the rows (those at even places) and tested on the other, by
    exact binomial tests at 0.1 % for all of them. A category is compared with all other rows. A
    number is compared with the rows of slightly smaller and larger numbers too, so what changes
    gradually decides nothing. Only rows count whose released label leaves the label open: a column
    computed from released labels decides nothing either.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers (of a floating type), or codes; rows in random order.
    labels, released : int32 arrays of shape (n,)
        Codes of the true and the released labels.
    """
    n, codes = len(values), np.unique(values, return_inverse=True)[1]
    sizes, k = np.bincount(codes), int(labels.max()) + 1
    if len(sizes) < 2 or sizes.max() < _FEWEST:
        return Decided(0.0, 0)
    table = np.bincount(released * k + labels, minlength=(int(released.max()) + 1) * k)
    table = table.reshape(-1, k)
    open_ = table <= _OPEN * table.sum(axis=1, keepdims=True)
    between = bool(np.issubdtype(values.dtype, np.floating))
    even = np.arange(n) % 2 == 0
    found, surprising = np.zeros(len(sizes), dtype=np.bool_), False
    for label in range(k):
        asked, own = open_[released, label], labels == label
        counts = np.array(
            [
                [np.bincount(codes[half & kind], minlength=len(sizes)) for kind in (True, own)]
                for half in (asked & even, asked & ~even, np.ones(n, dtype=np.bool_))
            ]
        )
        decide, clear = _deciding(counts, sizes, between=between)
        found |= decide
        surprising |= clear
    if not surprising:
        return Decided(0.0, 0)
    return Decided(float(sizes[found].sum()) / n, int(found.sum()))


def _deciding(
    counts: npt.NDArray[Any], sizes: IndexArray, *, between: bool
) -> tuple[BoolArray, bool]:
    """Return which values decide for one label, and whether one does that the label's share and
    its neighbours alone do not explain.

    ``counts``: by half (to learn, to test, all rows whatever was released), all rows or those with
    the label, and value.
    """
    (learnt, right), (asked, told), _ = counts
    chance = right.sum() / max(learnt.sum(), 1)
    chosen = (learnt >= _FEWEST_LEARNT) & (right >= _PURE * learnt)
    chosen &= binom.sf(right - 1, learnt, chance) <= _CHOSEN
    if not chosen.any():
        return chosen, False
    # Numbers next to each other that decide alike are one run.
    starts, ends = chosen.copy(), chosen.copy()
    if between:
        starts[1:] &= ~chosen[:-1]
        ends[:-1] &= ~chosen[1:]
    run = np.cumsum(starts)[chosen] - 1
    n, hits, size = (
        np.bincount(run, each[chosen]).astype(np.int64) for each in (asked, told, sizes)
    )
    usual = []
    for rows, own in np.where(chosen, 0, (counts[0] + counts[1], counts[2])):
        shares = np.full(len(n), own.sum() / max(rows.sum(), 1))
        if between:
            shares = np.maximum(shares, _nearby(rows, own, starts, ends, size))
        usual.append(shares)
    decide = (binom.sf(hits - 1, n, usual[0]) <= _ERROR / len(n)) & (hits >= _PURE * n)
    decide &= (usual[0] <= _OPEN) & (size >= _FEWEST)
    chosen[chosen] = decide[run]
    return chosen, bool((decide & (usual[1] <= _OPEN)).any())


def _nearby(
    rows: IndexArray, own: IndexArray, starts: BoolArray, ends: BoolArray, sizes: IndexArray
) -> FloatArray:
    """Return the larger share of the label among rows just below and just above each run."""
    so_far, own_so_far = (np.append(0, np.cumsum(each)) for each in (rows, own))
    width, below, above = np.clip(sizes, *_WINDOW), np.flatnonzero(starts), np.flatnonzero(ends) + 1
    low = np.searchsorted(so_far, so_far[below] - width, side="right") - 1
    high = np.searchsorted(so_far, so_far[above] + width, side="left")
    shares = []
    for a, b in ((np.maximum(low, 0), below), (above, np.minimum(high, len(rows)))):
        count = so_far[b] - so_far[a]
        share = (own_so_far[b] - own_so_far[a]) / np.maximum(count, 1)
        shares.append(np.where(count >= _FEWEST, share, 0.0))
    return np.maximum(*shares)
