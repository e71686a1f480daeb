"""What one column, or one representation of columns, says of labels.

In: a column and labels as arrays. Out: shares of labels that are told, learnt on some rows and
counted on others, and shares of people whose value alone decides their label.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ldpaudit.arrays import stable_order
from ldpaudit.release import BoolArray, Float32Array, FloatArray, IndexArray, IntArray

Values = npt.NDArray[Any]
# A number with more different values is put into this many bins of equally many rows …
MOST_CELLS: Final = 4096
# Labels of fewer rows are left out of the mean over labels.
LEAST_ROWS: Final = 10.0


@dataclass(frozen=True)
class Told:
    """The share of labels that a column reveals."""

    share: float
    """In [0, 1]: balanced accuracy, or accuracy where that is larger and no merit of the most
    frequent label."""
    error: float
    """Its standard error."""
    wrong: int
    """How many of the counted rows it tells wrongly."""
    derived: bool = False
    """Whether it seems to tell more than all labels."""


def label_weights(labels: IntArray, classes: int) -> FloatArray:
    """Return weights for known labels, codes of shape (n,): one where the row has the label.

    Shape (n, k). Rows of the inverse of the channel, by released label, are such weights too: their
    mean is the same.
    """
    return np.eye(classes)[labels]


def cells_of(values: Values, most: int = MOST_CELLS) -> tuple[IndexArray, int]:
    """Return the cell of each value, int64 of shape (n,), and the number of cells.

    Equal values share a cell; a number with more than ``most`` is put into as many bins. Missing is
    a value.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= most or not np.issubdtype(values.dtype, np.floating):
        return codes.astype(np.int64), len(distinct)
    starts = np.unique(np.sort(codes)[np.arange(1, most) * len(codes) // most])
    return np.searchsorted(starts, codes, side="right").astype(np.int64), len(starts) + 1


def told(values: Values, weights: FloatArray, most: int = MOST_CELLS) -> Told:
    """Return the share of labels (weights of shape (n, k)) that a column (n,) reveals.

    On one half of the rows (those at even places) the label that is commonest in each cell, as a
    share of its own frequency, is learnt; it is counted on the other half, and the reverse. Rows
    must be in random order.
    """
    cells, amount = cells_of(values, most)
    n, k = weights.shape
    # Of both kinds of guesses the weight of right ones, and the sum of its squares, by label.
    counts, even = np.zeros((2, 2, k)), np.arange(n) % 2 == 0
    for learning in (even, ~even):
        between = np.issubdtype(values.dtype, np.floating)
        guesses = cell_guesses(cells[learning], amount, weights[learning], between=between)
        for kind, guess in enumerate(guesses[:, cells[~learning]]):
            given = np.flatnonzero(guess >= 0)
            own = weights[~learning][given, guess[given]]
            counts[kind] += [np.bincount(guess[given], own**p, minlength=k) for p in (1, 2)]
    (balanced, squares), (plain, plain_squares) = counts
    totals = weights.sum(axis=0)
    frequent = totals >= LEAST_ROWS
    if frequent.sum() < 2:
        return Told(0.0, 0.0, n)
    shares = balanced[frequent] / totals[frequent]
    others = ((weights**2).sum(axis=0) - squares)[frequent]
    variances = squares[frequent] * (1 - shares) ** 2 + others * shares**2
    spread = max(float((variances / totals[frequent] ** 2).sum()), 0.0)
    share, error = float(shares.mean()), float(np.sqrt(spread) / frequent.sum())
    accuracy, wrong, majority = plain.sum() / n, n - balanced.sum(), totals.max() / n
    # The share of the guesses beyond the most frequent label that must be right for accuracy to
    # count.
    if accuracy - majority >= 0.9 * (1 - majority) and accuracy > share:
        error = float(np.sqrt(max(plain_squares.sum() - n * accuracy**2, 0.0))) / n
        share, wrong = float(accuracy), n - plain.sum()
    if share > 1 + 2.5 * error + 1e-9:  # More than all: its noise is that of the released label.
        return Told(0.0, 0.0, n, derived=True)
    return Told(min(max(share, 0.0), 1.0), error, max(round(wrong), 0))


def cell_guesses(
    cells: IndexArray, amount: int, weights: FloatArray, *, between: bool
) -> IndexArray:
    """Return each cell's guess (2, cells), first with every label as frequent; −1: never seen.

    Cells of numbers that were never seen take the guess of the one before, if ``between``.
    """
    counts = np.stack([np.bincount(cells, column, minlength=amount) for column in weights.T], 1)
    seen = np.bincount(cells, minlength=amount) > 0
    totals = np.maximum(counts.sum(axis=0), 1e-9)
    guesses = np.stack([(counts / totals).argmax(axis=1), counts.argmax(axis=1)])
    if between and amount:
        return guesses[:, np.maximum.accumulate(np.where(seen, np.arange(amount), seen.argmax()))]
    return np.where(seen, guesses, -1)


LIMIT: Final = 0.98  # a column that tells this share of the labels is said to decide them
MOST_ERROR: Final = 0.02  # with a larger standard error, a share says too little


def decides(one: Told) -> bool:
    """Return whether a share is at least 98 %, and surely, by three standard errors, 95 %."""
    return one.share >= max(LIMIT, 0.95 + 3 * one.error) and one.error <= MOST_ERROR


def is_flag(values: Values, labels: IntArray, classes: int) -> bool:
    """Return whether a column of fewer values than there are labels follows from the label."""
    distinct, codes = np.unique(values, return_inverse=True)
    few = 1 < len(distinct) < classes
    return few and decides(told(labels, label_weights(codes.astype(np.int32), len(distinct))))


# The share of a value's rows that must have its label.
PURE: Final = 0.98
# A label that more of the other rows have, or of those with the same released label, is no
# surprise.
OPEN: Final = 0.85
# … and of all its rows, also of those that do not count.
_NEARLY_PURE: Final = 0.9
_FEWEST_PEOPLE: Final = 20
_ROWS_OF_A_RUN: Final = 200
_FEWEST_CHOSEN: Final = 5
# The error probability of all that one column, or several together, may seem to decide.
_ALPHA: Final = 0.001


@dataclass(frozen=True)
class Decided:
    """What the values of a column decide."""

    share: float = 0.0
    """Of the rows: those with a value that decides their label."""
    purity: float = 0.0
    """The share of these, of the half that was tested, that have the label."""
    values: int = 0
    """How many such values."""


def decided(
    values: Values,
    labels: IntArray,
    released: IntArray,
    *,
    between: bool | None = None,
    alpha: float = _ALPHA,
    open_: Callable[[], BoolArray] | None = None,
) -> Decided:
    """Return the share of people whose value in a column decides their label.

    Values are chosen on one half of the rows (those at even places) and tested on the other, by
    exact binomial tests. A category is compared with all other rows. A number is compared with the
    rows of slightly smaller and larger numbers too, so what changes gradually decides nothing;
    where few people have one number, numbers in sequence are one value. Only rows count whose
    released label leaves the label open: a column computed from released labels decides nothing
    either.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers, or codes; rows in random order.
    labels, released : int32 arrays of shape (n,)
        Codes of the true and the released labels.
    between : bool, optional
        Whether values are numbers; default: those of a floating type.
    alpha : float
        The error probability of all values of one label.
    open_ : callable, optional
        Returns which labels other knowledge leaves open for the rows that are tested, bool array of
        shape (t, k); default: all. Called only where some value may decide a label.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    if between is None:
        between = bool(np.issubdtype(values.dtype, np.floating))
    every = _Rows(labels, released, open_)
    by_value = every.decided(codes, between=between, alpha=alpha)
    if not between or len(distinct) <= len(values) // _ROWS_OF_A_RUN:
        return by_value
    # Values that few people have: runs of them.
    edges = np.arange(_ROWS_OF_A_RUN, len(values), _ROWS_OF_A_RUN)
    starts = np.unique(np.sort(codes)[edges])
    runs = np.searchsorted(starts, codes, side="right")
    by_runs = every.decided(runs, between=True, alpha=alpha)
    return max(by_value, by_runs, key=lambda one: one.share)


class _Rows:
    """The labels of rows, half of them to learn from."""

    def __init__(
        self, labels: IntArray, released: IntArray, open_: Callable[[], BoolArray] | None
    ) -> None:
        self.labels, self.k = labels, int(labels.max()) + 1
        self.released, self._open = released, open_
        self.even = np.arange(len(labels)) % 2 == 0

    @cached_property
    def open(self) -> BoolArray:
        """Which labels are open for each row, bool (n, k)."""
        size = int(self.released.max()) + 1, self.k
        table = np.bincount(self.released * self.k + self.labels, minlength=size[0] * size[1])
        table = table.reshape(size)
        found: BoolArray = (table <= OPEN * table.sum(axis=1, keepdims=True))[self.released]
        if self._open is not None:
            found[~self.even] &= self._open()
        return found

    def decided(self, codes: IndexArray, *, between: bool, alpha: float) -> Decided:
        """Return what values decide, given as codes in their order; ``between``: of numbers."""
        sizes = np.bincount(codes)
        if len(sizes) < 2 or sizes.max() < _FEWEST_PEOPLE:
            return Decided()
        found, surprising, tested = np.zeros(len(sizes), dtype=np.bool_), False, np.zeros(2)
        for label in self._worth(codes, sizes):
            asked, own = self.open[:, label], self.labels == label
            parts = (asked & self.even, asked & ~self.even, slice(None))
            counts = np.array(
                [
                    [
                        np.bincount(codes[part], minlength=len(sizes)),
                        np.bincount(codes[part], own[part], minlength=len(sizes)),
                    ]
                    for part in parts
                ]
            ).astype(np.int64)
            decide, clear = _deciding(counts, sizes, between=between, alpha=alpha)
            found |= decide
            surprising |= clear
            tested += counts[1][:, decide].sum(axis=1)
        if not surprising:
            return Decided()
        share = float(sizes[found].sum()) / len(codes)
        return Decided(share, float(tested[1] / tested[0]), int(found.sum()))

    def _worth(self, codes: IndexArray, sizes: IndexArray) -> IndexArray:
        """Return the labels that nearly all rows of some value have."""
        table = np.bincount(codes * self.k + self.labels, minlength=len(sizes) * self.k)
        table = table.reshape(-1, self.k)
        most = (table >= _NEARLY_PURE * sizes[:, None]) & (table >= _FEWEST_CHOSEN)
        return np.flatnonzero(most.any(axis=0))


def _deciding(
    counts: npt.NDArray[Any], sizes: IndexArray, *, between: bool, alpha: float
) -> tuple[BoolArray, bool]:
    """Return which values decide for one label, and whether one does that the label's share and
    its neighbours alone do not explain.

    ``counts``: by half (to learn, to test, all rows whatever was released), all rows or those with
    the label, and value.
    """
    (learnt, right), (asked, told), _ = counts
    chance = right.sum() / max(learnt.sum(), 1)
    chosen = (learnt >= _FEWEST_CHOSEN) & (right >= PURE * learnt)
    chosen &= binom.sf(right - 1, learnt, chance) <= 0.01
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
    decide = (binom.sf(hits - 1, n, usual[0]) <= alpha / len(n)) & (hits >= PURE * n)
    decide &= (usual[0] <= OPEN) & (size >= _FEWEST_PEOPLE)
    chosen[chosen] = decide[run]
    return chosen, bool((decide & (usual[1] <= OPEN)).any())


def _nearby(
    rows: IndexArray, own: IndexArray, starts: BoolArray, ends: BoolArray, sizes: IndexArray
) -> FloatArray:
    """Return the larger share of the label among rows just below and just above each run."""
    so_far, own_so_far = (np.append(0, np.cumsum(each)) for each in (rows, own))
    # The fewest and the most rows with smaller or larger numbers that a number is compared with.
    width, below, above = np.clip(sizes, 50, 1000), np.flatnonzero(starts), np.flatnonzero(ends) + 1
    low = np.searchsorted(so_far, so_far[below] - width, side="right") - 1
    high = np.searchsorted(so_far, so_far[above] + width, side="left")
    shares = []
    for a, b in ((np.maximum(low, 0), below), (above, np.minimum(high, len(rows)))):
        count = so_far[b] - so_far[a]
        share = (own_so_far[b] - own_so_far[a]) / np.maximum(count, 1)
        shares.append(np.where(count >= _FEWEST_PEOPLE, share, 0.0))
    return np.maximum(*shares)


# Pairs of rows with equal values, the share of them that must have one label, and how unlikely that
# must be for rows with the next value.
_FEWEST_PAIRS: Final = 30
_ALIKE: Final = 0.98
_SURELY: Final = 1e-9
_MOST_EQUAL: Final = 30
# Two rows of different people are equal in a column at most so often, or it does not tell people.
_SELDOM: Final = 0.05
_MOST_COMPARED: Final = 100_000


def pairs_to_compare(rows: int, rng: np.random.Generator) -> IndexArray:
    """Return pairs of rows at random, int64 (2, pairs)."""
    return rng.integers(0, rows, (2, _MOST_COMPARED))


def tells_people_apart(values: Float32Array, pairs: IndexArray) -> bool:
    """Return whether two rows of different people are seldom equal in a column, float32 (n,)."""
    (first, second), values = pairs, np.ascontiguousarray(values)
    return bool(np.mean(values[first] == values[second]) <= _SELDOM)


def repeated_alike(
    values: Float32Array, labels: IntArray, others: Iterable[Float32Array] = ()
) -> tuple[float, float]:
    """Return the share of people whose value others share, where nearly all of them agree.

    And the share of pairs with one label. A number that was standardised, ranked or jittered class
    by class: equal values, however rare, come from one class. Compared with pairs of rows of the
    next value, which are as near; zeros where that explains it.

    Parameters
    ----------
    values : float32 array of shape (n,)
    labels : int32 array of shape (n,)
        Codes of the true labels.
    others : iterable of float32 arrays of shape (n,)
        Other columns that tell people apart, see :func:`tells_people_apart`: two rows that are
        equal in one of these, too, may be one person's, and do not count.
    """
    order = stable_order(values)
    order = order[~np.isnan(values[order])]
    nothing = (0.0, 0.0)
    if len(order) < 2 * _FEWEST_PAIRS:
        return nothing
    sorted_, own = values[order], labels[order]
    starts = np.flatnonzero(np.r_[True, sorted_[1:] != sorted_[:-1]])
    sizes = np.diff(np.r_[starts, len(sorted_)])
    rare = np.repeat((sizes > 1) & (sizes <= _MOST_EQUAL), sizes)
    same = sorted_[1:] == sorted_[:-1]
    equal, near = same & rare[1:], ~same & (rare[1:] | rare[:-1])
    places = np.flatnonzero(equal)
    for other in others:
        if len(places) < _FEWEST_PAIRS:
            return nothing
        places = places[other[order[places + 1]] != other[order[places]]]
    equal = np.zeros(len(same), dtype=np.bool_)
    equal[places] = True
    agree = own[1:] == own[:-1]
    pairs, apart = int(equal.sum()), int(near.sum())
    if pairs < _FEWEST_PAIRS or apart < _FEWEST_PAIRS:
        return nothing
    alike = int(agree[equal].sum())
    usual = (float(agree[near].sum()) + 1) / (apart + 2)
    if alike < _ALIKE * pairs or binom.sf(alike - 1, pairs, usual) > _SURELY:
        return nothing
    taking_part = np.r_[False, equal] | np.r_[equal, False]
    return float(taking_part.sum() / len(values)), alike / pairs
