"""How many labels a column shows: by itself, by the values that decide, by the order of the rows.

In: columns and labels as arrays. Out: shares of labels that are told, learnt on some rows and
counted on others; no file, no column name.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ldpaudit.arrays import stable_order
from ldpaudit.models.screening import associations, projected, strongest
from ldpaudit.release import BoolArray, FeatureTable, FloatArray, IndexArray, IntArray

Values = npt.NDArray[Any]
# A number with more different values is put into this many bins of equally many rows …
MOST_CELLS: Final = 4096
# Labels of fewer rows are left out of the mean over labels.
_LEAST_ROWS: Final = 10.0


@dataclass(frozen=True)
class Told:
    """The share of labels that a column reveals."""

    # ``share``: in [0, 1]: balanced accuracy, or accuracy where that is larger and no merit of the
    # most frequent label; ``error``: its standard error; ``wrong``: how many of the counted rows it
    # tells wrongly; ``derived``: whether it seems to tell more than all labels.

    share: float
    error: float
    wrong: int
    derived: bool = False


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
    counted = totals >= _LEAST_ROWS
    if counted.sum() < 2:
        return Told(0.0, 0.0, n)
    shares = balanced[counted] / totals[counted]
    others = ((weights**2).sum(axis=0) - squares)[counted]
    variances = squares[counted] * (1 - shares) ** 2 + others * shares**2
    spread = max(float((variances / totals[counted] ** 2).sum()), 0.0)
    share, error = float(shares.mean()), float(np.sqrt(spread) / counted.sum())
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
# Distances to the rows of which a column's value is looked at.
LAGS: Final = (-3, -2, -1, 1, 2, 3)
MOST_ERROR: Final = 0.02  # with a larger standard error, a share says too little


@dataclass(frozen=True)
class Scan:
    """What single columns tell."""

    # ``best``: the most that a column reveals about the label in its own row; ``deciding``: the
    # columns, by position, that decide the label of their row; ``lagged``: those that decide the
    # label of another row, with the distance to the row of the value; ``flags``: those whose value
    # follows from the label, and that so tell apart groups of labels; ``position``: what the row
    # number reveals; ``rows``: how many rows were looked at.

    best: Told
    deciding: tuple[int, ...]
    lagged: tuple[tuple[int, int], ...]
    flags: tuple[int, ...]
    position: Told
    rows: int


def rows_to_scan(rows: int, columns: int, classes: int, rng: np.random.Generator) -> IndexArray:
    """Return rows in random order, so many that a scan takes about a second."""
    cells = max(columns, 1) * max(classes, 4) // 4
    return rng.permutation(rows)[: min(50_000, max(2_000, 10_000_000 // cells))]


def scan(
    columns: Iterable[Values],
    rows: IndexArray,
    weights: FloatArray,
    labels: IntArray | None = None,
) -> Scan:
    """Look at every column of n rows in their order; at a few of the rows first.

    ``rows``: those to look at, in random order, int64 (s,); ``weights``: their labels, see
    :func:`label_weights`, (s, k); ``labels``: the labels themselves (s,), where they are known:
    flags are looked for then.
    """
    known = bool(np.isin(weights[:2_000], (0.0, 1.0)).all())
    # … or few bins where labels are noisy: one must hold enough of them.
    few, cells = (2_000, MOST_CELLS) if known else (10_000, 256)
    first, every = (part.sum(axis=0) >= _LEAST_ROWS for part in (weights[:few], weights))
    glances = len(weights) > 2 * few and bool((first == every).all())

    def look(values: Values, of: FloatArray) -> Told:
        if glances and len(np.unique(values[:few])) <= few // 10:
            found = told(values[:few], of[:few], cells)
            # A column that surely tells less of the first rows is not looked at further.
            if found.share + 5.0 * found.error < 0.9:
                return found
        return told(values, of, cells)

    def follows(column: Values, lag: int) -> bool:
        inside = (rows + lag >= 0) & (rows + lag < len(column))
        return decides(look(column[rows[inside] + lag], weights[inside]))

    position = look(rows.astype(np.float64), weights)
    # Then anything less the row's number tells labels too, true ones or released ones.
    counted = decides(position) or position.derived
    best, deciding, lagged, flags = Told(0.0, 0.0, 0), [], [], []
    for place, column in enumerate(columns):
        own, values = look(column[rows], weights), column[rows]
        if own.error <= MOST_ERROR and own.share > best.share:
            best = own
        number = not counted and np.issubdtype(column.dtype, np.floating)
        if decides(own) or (number and decides(look(values.astype(np.float64) - rows, weights))):
            deciding.append(place)
        elif labels is not None and _is_flag(values, labels, weights.shape[1]):
            flags.append(place)
        else:
            lagged += [(place, lag) for lag in islice((g for g in LAGS if follows(column, g)), 1)]
    return Scan(best, tuple(deciding), tuple(lagged), tuple(flags), position, len(rows))


def _is_flag(values: Values, labels: IntArray, classes: int) -> bool:
    """Return whether a column of fewer values than there are labels follows from the label."""
    distinct, codes = np.unique(values, return_inverse=True)
    few = 1 < len(distinct) < classes
    return few and decides(told(labels, label_weights(codes.astype(np.int32), len(distinct))))


def decides(one: Told) -> bool:
    """Return whether a share is at least 98 %, and surely, by three standard errors, 95 %."""
    return one.share >= max(LIMIT, 0.95 + 3 * one.error) and one.error <= MOST_ERROR


MOST_SCANNED: Final = 256  # columns that are scanned one by one


def worth_scanning(
    features: FeatureTable, codes: IntArray, rows: IndexArray, places: list[int]
) -> list[int]:
    """Return those of the columns at ``places`` that a scan must see, in order.

    A column is scored by the label of its own row, also with the row's number taken from it, and by
    the labels of the rows of :data:`LAGS`. Half of the columns are those of the own label.
    ``codes``, int32 (n,): true or released labels; ``rows``: of the scan, in random order; 5,000 of
    them are looked at.
    """
    rows = np.sort(rows[:5_000])
    table = projected(features.take(rows), tuple(places))
    # A column at row t that tells the label of row t - lag, seen ``lag`` rows away from there.
    near = [codes[(rows - lag) % len(codes)] for lag in LAGS]
    own, *lagged = associations(table, [codes[rows], *near])
    counted = replace(table, numeric=(table.numeric - rows[:, None]).astype(np.float32))
    width = table.numeric.shape[1]
    others = [*lagged, np.append(associations(counted, [codes[rows]])[0][:width], own[width:])]
    kept = set(strongest(own, MOST_SCANNED // 2).tolist())
    for scores in others:
        kept.update(strongest(scores, MOST_SCANNED // 2 // len(others)).tolist())
    return [places[i] for i in sorted(kept)]


# A column that decides the labels of fewer people is not worth a word; a policy may set another
# limit.
LEAST_SHARE: Final = 0.01
# The share of a value's rows that must have its label.
_PURE: Final = 0.98
# A label that more of the other rows have, or of those with the same released label, is no
# surprise.
_OPEN: Final = 0.85
_FEWEST_PEOPLE: Final = 20
_ROWS_OF_A_RUN: Final = 200


@dataclass(frozen=True)
class Decided:
    """What the values of a column decide."""

    # ``share``: of the rows: those with a value that decides their label; ``values``: how many such
    # values there are; ``ranges``: whether these are ranges of values.

    share: float
    values: int
    ranges: bool = False


def decided(values: Values, labels: IntArray, released: IntArray) -> Decided:
    """Return the share of people whose value in a column decides their label.

    Values are chosen on one half of the rows (those at even places) and tested on the other, by
    exact binomial tests at 0.1 % for all of them. A category is compared with all other rows. A
    number is compared with the rows of slightly smaller and larger numbers too, so what changes
    gradually decides nothing; where few people have one number, numbers in sequence are one
    value. Only rows count whose released label leaves the label open: a column
    computed from released labels decides nothing either.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers (of a floating type), or codes; rows in random order.
    labels, released : int32 arrays of shape (n,)
        Codes of the true and the released labels.
    """
    between = bool(np.issubdtype(values.dtype, np.floating))
    by_value = _decided(
        np.unique(values, return_inverse=True)[1], labels, released, between=between
    )
    if not between:
        return by_value
    # Values that few people have: runs of them.
    cells = cells_of(values, max(len(values) // _ROWS_OF_A_RUN, 2))[0]
    by_runs = _decided(np.unique(cells, return_inverse=True)[1], labels, released, between=between)
    return replace(by_runs, ranges=True) if by_runs.share > by_value.share else by_value


def _decided(codes: IndexArray, labels: IntArray, released: IntArray, *, between: bool) -> Decided:
    """Return what values decide, given as codes in their order; ``between``: of numbers."""
    n, sizes, k = len(codes), np.bincount(codes), int(labels.max()) + 1
    if len(sizes) < 2 or sizes.max() < _FEWEST_PEOPLE:
        return Decided(0.0, 0)
    table = np.bincount(released * k + labels, minlength=(int(released.max()) + 1) * k)
    table = table.reshape(-1, k)
    open_ = table <= _OPEN * table.sum(axis=1, keepdims=True)
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
    chosen = (learnt >= 5) & (right >= _PURE * learnt)
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
    decide = (binom.sf(hits - 1, n, usual[0]) <= 0.001 / len(n)) & (hits >= _PURE * n)
    decide &= (usual[0] <= _OPEN) & (size >= _FEWEST_PEOPLE)
    chosen[chosen] = decide[run]
    return chosen, bool((decide & (usual[1] <= _OPEN)).any())


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


# For each row; a smaller variance is none.
_LEAST_VARIANCE: Final = 1e-9


@dataclass(frozen=True)
class Agreement:
    """How often rows at a distance have the same label."""

    # ``pairs``, ``same``: how many pairs of rows there are, and how many have the same label;
    # ``chance``: the share that has it on average over all orders of the rows; ``z``: by how many
    # standard deviations, over all orders, the number of such pairs differs.

    pairs: int
    same: int
    chance: float
    z: float

    @property
    def excess(self) -> float:
        """The share of pairs beyond chance: 0 for a random order, 1 if all agree."""
        if self.chance >= 1 or not self.pairs:
            return 0.0
        return (self.same / self.pairs - self.chance) / (1 - self.chance)


def strongest_agreement(
    labels: IntArray, classes: int, released: IntArray | None = None
) -> Agreement | None:
    """Return the agreement at the distance, of 1 to 3 rows, where it is least like chance.

    None with fewer than 8 rows.

    Parameters
    ----------
    labels : integer array of shape (n,)
        Codes in the order of the rows.
    classes : int
        k.
    released : integer array of shape (n,), optional
        Codes of the rows' released labels. Chance is then over the orders that leave these where
        they are: rows that were sorted by the released label tell no more than that label does.
    """
    if len(labels) < 8:
        return None
    if released is None:
        counts = np.bincount(labels, minlength=classes)
        same = {lag: int((labels[lag:] == labels[:-lag]).sum()) for lag in (1, 2, 3)}
        found = [agreement(counts, lag, equal) for lag, equal in same.items()]
    else:
        # More than 20 released labels are put into so many groups of neighbouring ones.
        cells = cells_of(released.astype(float), 20)[0]
        found = [agreement_beyond(labels, cells, lag) for lag in (1, 2, 3)]
    return max(found, key=lambda one: abs(one.z))


def agreement(counts: IndexArray, lag: int, same: int) -> Agreement:
    """Return the agreement of pairs at distance ``lag``, of which ``same`` have one label.

    Mean and variance are exact over all orders of n rows with these ``counts`` of labels: sums over
    pairs of pairs, which share a row or do not (Moran 1948, "The interpretation of statistical
    maps", for any arrangement of pairs).
    """
    sizes = counts.astype(float)
    n = float(sizes.sum())
    pairs, touching = n - lag, max(n - 2 * lag, 0.0)
    twos, threes = sizes * (sizes - 1), sizes * (sizes - 1) * (sizes - 2)
    fours = threes * (sizes - 3)
    both = twos.sum() ** 2 - (twos**2).sum() + fours.sum()
    two = twos.sum() / (n * (n - 1))
    three = threes.sum() / (n * (n - 1) * (n - 2))
    four = both / (n * (n - 1) * (n - 2) * (n - 3))
    apart = pairs**2 - pairs - 2 * touching
    variance = pairs * two + 2 * touching * three + apart * four - (pairs * two) ** 2
    z = (same - pairs * two) / math.sqrt(variance) if variance > _LEAST_VARIANCE * n else 0.0
    return Agreement(int(pairs), same, float(two), float(z))


def agreement_beyond(labels: IntArray, cells: IndexArray, lag: int) -> Agreement:
    """Return the agreement of pairs at distance ``lag``, against all orders within each cell.

    The mean is exact. The variance is that of labels drawn by the shares in their cells, less what
    comes from how many of each label there are (Hoeffding's projection on these counts). Where
    fewer than 40 pairs are expected to differ, z is 0: it would be far from normal.

    Parameters
    ----------
    labels, cells : integer arrays of shape (n,)
        Codes in the order of the rows, from 0.
    lag : int
    """
    m, k = int(cells.max()) + 1, int(labels.max()) + 1
    table = np.bincount(cells * k + labels, minlength=m * k).reshape(m, k).astype(float)
    sizes = np.maximum(table.sum(axis=1), 1)
    shares = table / sizes[:, None]
    equal = shares @ shares.T
    exact = equal.copy()
    np.fill_diagonal(exact, (table * (table - 1)).sum(axis=1) / np.maximum(sizes * (sizes - 1), 1))
    first, second, third = cells[: -2 * lag], cells[lag:-lag], cells[2 * lag :]
    pairs = np.bincount(cells[:-lag] * m + cells[lag:], minlength=m * m).reshape(m, m)
    threes = np.bincount((first * m + second) * m + third, minlength=m**3).reshape(m, m, m)
    all_equal = np.einsum("ay,by,cy->abc", shares, shares, shares)
    touching = (threes * (all_equal - equal[:, :, None] * equal[None])).sum()
    near = (pairs + pairs.T) @ shares / sizes[:, None]
    known = (sizes * ((shares * near**2).sum(axis=1) - (shares * near).sum(axis=1) ** 2)).sum()
    variance = float((pairs * equal * (1 - equal)).sum() + 2 * touching - known)
    same, n = int((labels[lag:] == labels[:-lag]).sum()), len(labels)
    mean = float((pairs * exact).sum())
    known_enough = variance > _LEAST_VARIANCE * n and n - lag - mean >= 40.0
    z = (same - mean) / math.sqrt(variance) if known_enough else 0.0
    return Agreement(n - lag, same, mean / (n - lag), float(z))


def agreement_in_cells(labels: IntArray, cells: IndexArray, rng: np.random.Generator) -> Agreement:
    """Return the agreement least like chance, against 60 random orders of the rows of each cell.

    So it is 0 where the order was made from what the cells say: a file that is sorted by a feature
    reveals no more than that feature does.

    Parameters
    ----------
    labels, cells : integer arrays of shape (n,)
        Codes in the order of the rows.
    rng : numpy.random.Generator
    """
    lags, n = np.array([1, 2, 3]), len(labels)
    by_cell = stable_order(cells)

    def same(order: IntArray) -> IndexArray:
        return np.array([np.count_nonzero(order[lag:] == order[:-lag]) for lag in lags])

    drawn, shuffled = np.empty((60, 3)), np.empty_like(labels)
    for draw in drawn:
        shuffled[by_cell] = labels[np.lexsort((rng.random(n), cells))]
        draw[:] = same(shuffled)
    found, mean = same(labels), drawn.mean(axis=0)
    z = (found - mean) / np.maximum(drawn.std(axis=0, ddof=1), 1.0)
    at = int(np.argmax(np.abs(z)))
    pairs = n - int(lags[at])
    return Agreement(pairs, int(found[at]), float(mean[at] / pairs), float(z[at]))
