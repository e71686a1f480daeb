"""Do features and released label go together given the true label, and which column explains it?"""

# Each column is cut into a few bins and tested on its own, and small models take all of them. Two
# kinds of columns tell something of a released label z beyond the true label y. One that was
# computed from z: given z (and the other columns) it says nothing of y. One that the channel uses:
# then it says about as much of y given z as of z given y.

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.assumptions.noise import average, bet_on_rows, p_value
from ldpaudit.models.screening import (
    TREE_COLUMNS,
    association,
    most_bins,
    strongest,
    strongest_of,
    tried_out,
)
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

_BINS: Final = 16
_PRIOR_ROWS: Final = 5.0
_MOST_ROWS: Final = 50_000
# No chance is taken to be smaller.
_SUREST: Final = 1e-3


@dataclass(frozen=True)
class Halves:
    """Rows to learn on and rows to test on, int64 arrays of positions in the release."""

    learn: IndexArray
    test: IndexArray


def sampled(rows: IndexArray, width: int, rng: np.random.Generator) -> IndexArray:
    """Return the rows, or so many at random that a model of ``width`` columns is soon fitted."""
    most = int(np.clip(1_500_000 / max(width, 1), 4_000, _MOST_ROWS))
    return rows if len(rows) <= most else np.sort(rng.choice(rows, size=most, replace=False))


def column_bins(features: FeatureTable, column: int, learn: IndexArray) -> tuple[IntArray, int]:
    """Return the bin of each row in an array column, int32 (n,), and how many bins there are.

    Quantiles of the learning rows, or the values themselves where they are few; the most frequent
    levels; missing values have a bin of their own.
    """
    d = features.numeric.shape[1]
    if column >= d:
        codes = features.categorical[:, column - d]
        counts = np.bincount(codes[learn] + 1, minlength=features.cardinalities[column - d] + 1)
        kept = np.argsort(-counts[1:], kind="stable")[:32]
        lookup = np.full(len(counts), len(kept) + 1, dtype=np.int32)
        lookup[0] = 0
        lookup[kept + 1] = np.arange(1, len(kept) + 1)
        return lookup[codes + 1], len(kept) + 2
    values = features.numeric[:, column]
    known = values[learn]
    known = known[~np.isnan(known)]
    distinct = np.unique(known)
    if len(distinct) <= _BINS:
        edges = (distinct[1:] + distinct[:-1]) / 2
    else:
        edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, values, side="right").astype(np.int32) + 1
    return np.where(np.isnan(values), 0, bins).astype(np.int32), len(edges) + 2


def tilts(
    bins: IntArray, size: int, outcomes: IntArray, strata: IndexArray, halves: Halves
) -> FloatArray:
    """Return the log-odds that a bin adds to an outcome in its stratum, learnt on other rows.

    Parameters
    ----------
    bins, outcomes : int32 arrays of shape (n,)
        The bin of each row, below ``size``, and 0 or 1.
    strata : int64 array of shape (n,)
        A few codes from 0.

    Returns
    -------
    float64 array, one for each test row
    """
    k = int(strata.max()) + 1
    cells = strata * size + bins
    learn = halves.learn
    ones = np.bincount(cells[learn], weights=outcomes[learn], minlength=k * size)
    rows = np.bincount(cells[learn], minlength=k * size).astype(np.float64)
    by_stratum = (ones.reshape(k, size).sum(axis=1) + 0.5) / (
        rows.reshape(k, size).sum(axis=1) + 1.0
    )
    base = np.repeat(by_stratum, size)
    chance = (ones + _PRIOR_ROWS * base) / (rows + _PRIOR_ROWS)
    return np.asarray((logit(chance) - logit(base))[cells[halves.test]])


def rates(outcomes: IntArray, codes: IndexArray, learn: IndexArray) -> FloatArray:
    """Return for each row the share of ones among learning rows of its code, float64 (n,)."""
    size = int(codes.max()) + 1
    ones = np.bincount(codes[learn], weights=outcomes[learn], minlength=size)
    rows = np.bincount(codes[learn], minlength=size)
    mean = (ones.sum() + 0.5) / (rows.sum() + 1.0)
    return np.asarray(((ones + mean) / (rows + 1.0))[codes])


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns as boosting takes them."""

    # ``matrix``, float32 array of shape (n, c). ``categorical``, bool array of shape (c,).
    # ``places``, int64 array of shape (c,): the array column of the features that each is, the
    # numeric ones first; -1 for others.

    matrix: Float32Array
    categorical: BoolArray
    places: IndexArray

    @classmethod
    def of(cls, features: FeatureTable) -> "Columns":
        """Return all columns of a table."""
        from ldpaudit.models.encoding import BoostingMatrix

        shape, d = BoostingMatrix.fit(features), features.numeric.shape[1]
        places = np.r_[d + np.arange(features.categorical.shape[1]), np.flatnonzero(shape.columns)]
        return cls(shape.transform(features), shape.categorical(), places.astype(np.int64))

    def only(self, places: Collection[int]) -> "Columns":
        """Return some of the columns by their places, with all that have none."""
        kept = np.isin(self.places, [-1, *places])
        return Columns(self.matrix[:, kept], self.categorical[kept], self.places[kept])

    def beside(self, *numbers: FloatArray) -> "Columns":
        """Return the columns with further numbers of shape (n,) beside them."""
        more = np.stack(numbers, axis=1).astype(np.float32)
        return Columns(
            np.concatenate([self.matrix, more], axis=1),
            np.r_[self.categorical, np.zeros(len(numbers), dtype=np.bool_)],
            np.r_[self.places, np.full(len(numbers), -1)],
        )

    def log_odds(
        self, outcomes: IntArray, halves: Halves, seed: int, *, small: bool = False
    ) -> FloatArray:
        """Return the log-odds of 1 on test rows, by boosting on learning rows; float64.

        A ``small`` model says less, and errs less where little is to be said.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        known = outcomes[halves.learn]
        if self.matrix.shape[1] > TREE_COLUMNS:
            return self._strongest(outcomes, halves).log_odds(outcomes, halves, seed, small=small)
        if len(np.unique(known)) < 2 or self.matrix.shape[1] == 0:
            share = (known.sum() + 0.5) / (len(known) + 1.0)
            return np.full(len(halves.test), np.log(share / (1 - share)))
        rounds, rate = (12, 0.25) if tried_out() else (40, 0.1)
        model: Any = HistGradientBoostingClassifier(
            learning_rate=rate,
            max_iter=rounds,
            max_leaf_nodes=5 if small else 15,
            early_stopping=False,
            categorical_features=self.categorical,
            max_bins=most_bins(self.matrix.shape[1], self.categorical),
            random_state=seed,
        )
        model.fit(self.matrix[halves.learn], known)
        chances = model.predict_proba(self.matrix[halves.test])[:, 1]
        return logit(np.clip(chances, _SUREST, 1 - _SUREST))

    def _strongest(self, outcomes: IntArray, halves: Halves) -> "Columns":
        extra = self.places < 0
        most = TREE_COLUMNS - int(extra.sum())
        learn = halves.learn
        kept = extra | strongest_of(self.matrix[learn], outcomes[learn], ~extra, most)
        return Columns(self.matrix[:, kept], self.categorical[kept], self.places[kept])


def logit(chance: FloatArray) -> FloatArray:
    """Return log(p/(1 − p))."""
    return np.asarray(np.log(chance) - np.log1p(-chance))


SUSPICIOUS: Final = 0.05  # the p-value from which columns are looked at one by one
# Standard errors.
_BY_CHANCE: Final = 2.5
SURE: Final = 2.0
_MOST_BETS: Final = 1_024
Counts = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """What a test of conditional independence is given."""

    # ``features``: n rows; ``truth``, ``released``, int32 arrays of shape (n,); ``sides``, tuple of
    # two int32 arrays of shape (n,): the true and the released label as 0 or 1: in which half of
    # the labels they are; ``halves``: where to learn and where to test; ``seed``: of the models.

    features: FeatureTable
    truth: IntArray
    released: IntArray
    sides: tuple[IntArray, IntArray]
    halves: Halves
    seed: int


@dataclass(frozen=True, eq=False)
class Dependence:
    """How clearly features and released label go together given the true label."""

    # ``columns``, float64 array of shape (c,): the logarithm of each array column's wealth; 0 where
    # none was bet. ``staked``: the columns that share the stake: those bet on, chosen on learning
    # rows, or left out. ``joint``: that of all columns together, by boosting.

    columns: FloatArray
    staked: list[int]
    joint: float

    @property
    def p_value(self) -> float:
        """A valid p-value of independence: half of the stake is on all columns together."""
        return p_value(average([self.joint, average(self.columns[self.staked])]))

    def suspects(self) -> list[int]:
        """Return the columns that go with the released label on their own, the clearest first."""
        order = np.argsort(-self.columns, kind="stable")[:16]
        return [int(j) for j in order if p_value(float(self.columns[j])) <= SUSPICIOUS]


def label_sides(
    truth: IntArray, released: IntArray, *, same_labels: bool
) -> tuple[IntArray, IntArray]:
    """Return true and released labels as 0 or 1, int32 each, the released ones about half 1."""
    sides = _balanced(np.bincount(released))
    if same_labels:
        sides = np.r_[sides, np.zeros(max(int(truth.max()) + 1 - len(sides), 0), dtype=np.int32)]
        return sides[truth], sides[released]
    return _balanced(np.bincount(truth))[truth], sides[released]


def _balanced(counts: Counts) -> IntArray:
    sides, rows = np.zeros(len(counts), dtype=np.int32), [0, 0]
    for code in np.argsort(-counts, kind="stable"):
        lighter = int(rows[1] < rows[0])
        sides[code], rows[lighter] = lighter, rows[lighter] + int(counts[code])
    return sides


def dependence(rows: LabelledRows, without: Collection[int] = ()) -> Dependence:
    """Bet on test rows that features say something of the released label beyond the true one.

    Valid for independent rows: given the true label, the released labels of a feature-blind channel
    are in any order. ``without``: array columns that take no part.
    """
    # In random order: a file sorted by the released label is in none that bets may follow.
    test = np.random.default_rng(rows.seed).permutation(rows.halves.test)
    halves, outcomes = Halves(rows.halves.learn, test), rows.sides[1]
    truth = rows.truth.astype(np.int64)
    base = rates(outcomes, truth, halves.learn)
    quarters = np.unique(np.quantile(base, [0.25, 0.5, 0.75]))
    exact = truth.max() < 8
    strata = truth if exact else np.searchsorted(quarters, base).astype(np.int64)
    used = [j for j in range(rows.features.width) if j not in without]
    tested = outcomes[halves.test], truth[halves.test]
    wealth = []
    singly = _clearest(rows, strata, used)
    for j in singly:
        bins, size = column_bins(rows.features, j, halves.learn)
        wealth.append(bet_on_rows(*tested, tilts(bins, size, outcomes, strata, halves)))
    columns = Columns.of(rows.features).only(used).beside(base)
    tilt = columns.log_odds(outcomes, halves, rows.seed) - logit(base)[halves.test]
    every = np.zeros(rows.features.width)
    every[singly] = wealth
    return Dependence(every, sorted({*singly, *without}), bet_on_rows(*tested, tilt))


def _clearest(rows: LabelledRows, strata: IndexArray, used: list[int]) -> list[int]:
    """Return the columns to bet on singly: of many, those that the learning rows speak for."""
    if len(used) <= _MOST_BETS:
        return used
    learn, outcomes = rows.halves.learn, rows.sides[1]
    scores = np.full(rows.features.width, -np.inf)
    for stratum in range(int(strata.max()) + 1):
        mine = learn[strata[learn] == stratum]
        if len(np.unique(outcomes[mine])) > 1:
            found = association(rows.features.take(mine), outcomes[mine])
            scores = np.maximum(scores, found)
    allowed = np.asarray(used)
    return [int(j) for j in allowed[strongest(scores[allowed], _MOST_BETS)]]


def derived_columns(
    rows: LabelledRows,
    suspects: list[int],
    *,
    errors: float = 0.0,
    targets: tuple[int, ...] = (0,),
) -> tuple[int, ...]:
    """Return which of the suspects were computed from the released label, in their order.

    Step by step, the clearest first: one that says nothing of y beyond z and the columns that are
    no suspects is derived; another joins those columns, so that a second one which repeats it (age
    groups beside age) has nothing left to explain. ``errors``: by how many standard errors what
    they say of y must be below the limit; negative: may be above it. ``targets``: what stands
    for y, see :class:`_Models`.
    """
    models = _Models.of(rows, suspects)
    derived: list[int] = []
    kept: list[int] = []
    for j in suspects:
        of_released, noise = models.gain(1, kept, j)
        # The clearest one was seen by its bet, also where this sees little.
        if of_released < _BY_CHANCE * noise and (derived or kept):
            continue
        of_truth, noise = max(models.gain(target, kept, j) for target in targets)
        of_truth += errors * noise
        # A column that says more of y than this share of what it says of z is no derived one,
        # however few rows say so: a group in the clear must not be taken for one.
        by_chance = 0.0 if errors > 0 else min(_BY_CHANCE * noise, 0.25 * of_released)
        # A derived column says less of y than this share of what it says of z, or than chance does.
        if of_truth < max(0.1 * of_released, by_chance):
            derived.append(j)
        else:
            kept.append(j)
    return tuple(derived)


@dataclass(frozen=True, eq=False)
class _Models:
    """Small models of one label from the other, a summary of the other columns, and suspects."""

    # Targets: 0 is the true label given the released one, 1 the other way round, 2 is 0 put
    # otherwise: whether the two differ, given the released one. Trees see at once that rows of a
    # group are in the clear by the last, and that a natural feature goes with the label by the
    # first.

    columns: Columns
    rows: LabelledRows
    targets: tuple[IntArray, ...]
    given: tuple[tuple[FloatArray, FloatArray], ...]
    _known: dict[tuple[int, ...], FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: LabelledRows, suspects: list[int]) -> "_Models":
        rng = np.random.default_rng(rows.seed)
        learn = rng.permutation(rows.halves.learn)
        first, second = learn[: len(learn) // 2], learn[len(learn) // 2 :]
        n, others = len(rows.truth), set(range(rows.features.width)) - set(suspects)
        columns = Columns.of(rows.features)
        everyone = Halves(first, np.arange(n))
        summary = columns.only(others).log_odds(rows.sides[0], everyone, rows.seed)
        by_released = rates(rows.sides[0], rows.released.astype(np.int64), first)
        by_truth = rates(rows.sides[1], rows.truth.astype(np.int64), first)
        truth, released = rows.sides
        differ = (truth != released).astype(np.int32)
        sign = np.where(released == 1, -1.0, 1.0)
        shared = np.where(released == 1, 1 - by_released, by_released)
        given = ((summary, by_released), (summary, by_truth), (sign * summary, shared))
        rows = replace(rows, halves=Halves(second, rows.halves.test))
        return cls(columns.only(suspects), rows, (truth, released, differ), given)

    def gain(self, target: int, kept: list[int], column: int) -> tuple[float, float]:
        """Return what a column adds of a target, and its standard error."""
        before, after = (self._losses(target, places) for places in (kept, [*kept, column]))
        gains = before - after
        return float(gains.mean()), float(gains.std() / np.sqrt(len(gains)))

    def _losses(self, target: int, places: list[int]) -> FloatArray:
        key = (target, *sorted(places))
        if key in self._known:
            return self._known[key]
        outcomes, halves = self.targets[target], self.rows.halves
        columns = self.columns.only(places).beside(*self.given[target])
        log_odds = columns.log_odds(outcomes, halves, self.rows.seed, small=True)
        signed = np.where(outcomes[halves.test] == 1, log_odds, -log_odds)
        self._known[key] = np.logaddexp(0.0, -signed)
        return self._known[key]
