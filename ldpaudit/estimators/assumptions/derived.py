"""Do features and released label go together given the true label, and which column explains it?

Two kinds of columns tell something of a released label z beyond the true label y. One that was
computed from z: given z (and the other columns) it says nothing of y. One that the channel uses:
then it says about as much of y given z as of z given y.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.assumptions.bets import average, bet_on_rows, p_value
from ldpaudit.estimators.assumptions.columns import (
    Columns,
    Halves,
    column_bins,
    logit,
    rates,
    tilts,
)
from ldpaudit.modelling.association import association, strongest
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

SUSPICIOUS: Final = 0.05
"""The p-value from which columns are looked at one by one."""
MOST_SUSPECTS: Final = 16
_DERIVED_SHARE: Final = 0.1
"""A derived column says less of y than this share of what it says of z, or than chance does."""
_BY_CHANCE: Final = 2.5
"""Standard errors."""
_SURE: Final = 2.0
_MOST_BY_CHANCE: Final = 0.25
"""A column that says more of y than this share of what it says of z is no derived one, however
few rows say so: a group in the clear must not be taken for one."""
_EXACT_STRATA: Final = 8
_MOST_BETS: Final = 1_024
Counts = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """What a test of conditional independence is given.

    Attributes
    ----------
    features : FeatureTable
        n rows.
    truth, released : int32 arrays of shape (n,)
    sides : tuple of two int32 arrays of shape (n,)
        The true and the released label as 0 or 1: in which half of the labels they are.
    halves : Halves
        Where to learn and where to test.
    seed : int
        Of the models.
    """

    features: FeatureTable
    truth: IntArray
    released: IntArray
    sides: tuple[IntArray, IntArray]
    halves: Halves
    seed: int


@dataclass(frozen=True, eq=False)
class Dependence:
    """How clearly features and released label go together given the true label.

    Attributes
    ----------
    columns : float64 array of shape (c,)
        The logarithm of each array column's wealth; 0 where none was bet.
    staked : list of int
        The columns that share the stake: those bet on, chosen on learning rows, or left out.
    joint : float
        That of all columns together, by boosting.
    """

    columns: FloatArray
    staked: list[int]
    joint: float

    @property
    def p_value(self) -> float:
        """A valid p-value of independence: half of the stake is on all columns together."""
        return p_value(average([self.joint, average(self.columns[self.staked])]))

    def suspects(self) -> list[int]:
        """Return the columns that go with the released label on their own, the clearest first."""
        order = np.argsort(-self.columns, kind="stable")[:MOST_SUSPECTS]
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
    """Put codes on two sides of about as many rows."""
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
    strata = truth if truth.max() < _EXACT_STRATA else _coarse(base)
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


def _coarse(rate: FloatArray) -> IndexArray:
    edges = np.unique(np.quantile(rate, [0.25, 0.5, 0.75]))
    return np.searchsorted(edges, rate).astype(np.int64)


def derived_columns(
    rows: LabelledRows,
    suspects: list[int],
    *,
    sure: bool = False,
    targets: tuple[int, ...] = (0,),
) -> tuple[int, ...]:
    """Return which of the suspects were computed from the released label, in their order.

    Step by step, the clearest first: one that says nothing of y beyond z and the columns that are
    no suspects is derived; another joins those columns, so that a second one which repeats it (age
    groups beside age) has nothing left to explain. If ``sure``, those that chance does not explain:
    what they say of y is below the limit by two standard errors. ``targets``: what stands for y,
    see :class:`_Models`.
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
        if sure:
            of_truth += _SURE * noise
        by_chance = 0.0 if sure else min(_BY_CHANCE * noise, _MOST_BY_CHANCE * of_released)
        if of_truth < max(_DERIVED_SHARE * of_released, by_chance):
            derived.append(j)
        else:
            kept.append(j)
    return tuple(derived)


@dataclass(frozen=True, eq=False)
class _Models:
    """Small models of one label from the other, a summary of the other columns, and suspects.

    Targets: 0 is the true label given the released one, 1 the other way round, 2 is 0 put
    otherwise: whether the two differ, given the released one. Trees see at once that rows of a
    group are in the clear by the last, and that a natural feature goes with the label by the first.
    """

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
        if key not in self._known:
            self._known[key] = self._measured(target, places)
        return self._known[key]

    def _measured(self, target: int, places: list[int]) -> FloatArray:
        outcomes, halves = self.targets[target], self.rows.halves
        columns = self.columns.only(places).beside(*self.given[target])
        log_odds = columns.log_odds(outcomes, halves, self.rows.seed, small=True)
        signed = np.where(outcomes[halves.test] == 1, log_odds, -log_odds)
        return np.logaddexp(0.0, -signed)
