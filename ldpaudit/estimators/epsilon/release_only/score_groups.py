"""Groups of rows that a model is surest about: for each output the rows where it is likeliest.

The groups stand in for true labels. They are chosen without the released labels of the rows tested,
so every bound for true labels holds for them too: whatever rows are put together, each of them was
released by one of the channel's rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ldpaudit.estimators.epsilon.accuracy_design import expected_bound
from ldpaudit.estimators.intervals.binomial import (
    clopper_pearson_lower,
    trials_lower,
    trials_upper,
)
from ldpaudit.release import FloatArray, IndexArray, IntArray

SMALLEST_GROUP = 32
Method = Literal["accuracy", "two-sided"]
"""How ε is bounded from groups: by how often all are right, or by one output's shares in two."""
_DESIGN_ALPHA = 0.01
_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class Ladder:
    """For each group, nested candidate sizes and how many rows of them to expect right.

    Attributes
    ----------
    sizes, right : float64 arrays of shape (g, s)
        Rows, from the most to the fewest, and the expected number of them whose released label is
        the one that the group represents. A last step of 0 rows leaves a group out.
    """

    sizes: FloatArray
    right: FloatArray

    def best(self, method: Method) -> tuple[IndexArray, float]:
        """Return the step of each group, int64 (g,), with the largest expected bound, and that.

        The best common step first, then group by group; the bound is that of ``method``.
        """
        common = np.arange(self.sizes.shape[1])
        values = _EXPECTED[method](self.right.T, self.sizes.T)
        step = np.full(len(self.sizes), common[int(values.argmax())], dtype=np.int64)
        best = float(values.max())
        for _ in range(_SWEEPS):
            before = best
            for g in range(len(self.sizes)):
                best = max(best, self._improve(step, g, best, method))
            if best <= before + 1e-6:
                break
        return step, best

    def _improve(self, step: IndexArray, g: int, best: float, method: Method) -> float:
        """Move one group to its best step, in place, where that raises the bound."""
        steps = self.sizes.shape[1]
        index = np.repeat(step[None, :], steps, axis=0)
        index[:, g] = np.arange(steps)
        groups = np.arange(len(self.sizes))
        values = _EXPECTED[method](self.right[groups, index], self.sizes[groups, index])
        if values.max() > best:
            step[g] = int(values.argmax())
        return float(values.max())


def _expected(right: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the expected bound of each row of right and sizes, shape (c, g) → (c,)."""
    usable = (sizes > 0).sum(axis=1) >= 2
    values = np.zeros(len(sizes))
    if usable.any():
        values[usable] = expected_bound(right[usable].sum(axis=1), sizes[usable], _DESIGN_ALPHA)
    return values


def _expected_two_sided(right: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the two-sided bound of each row of expected counts in two groups, (c, 2) → (c,)."""
    usable = (sizes > 0).all(axis=1)
    values = np.zeros(len(sizes))
    some, rows = right[usable], sizes[usable]
    low = trials_lower(np.floor(some[:, 1]), rows[:, 1], _DESIGN_ALPHA / 2)
    high = trials_upper(np.ceil(rows[:, 0] - some[:, 0]), rows[:, 0], _DESIGN_ALPHA / 2)
    with np.errstate(divide="ignore"):
        ratio = np.maximum(np.log(low) - np.log(high), np.log1p(-high) - np.log1p(-low))
    values[usable] = np.maximum(ratio, 0.0)
    return values


_EXPECTED: Final[Mapping[Method, Callable[[FloatArray, FloatArray], FloatArray]]] = {
    "accuracy": _expected,
    "two-sided": _expected_two_sided,
}


def group_sizes(largest: int) -> FloatArray:
    """Return a geometric grid from ``largest`` down to the smallest group, and 0 at its end."""
    if largest == 0:
        return np.zeros(1)
    steps = max(int(2 * np.log2(largest / SMALLEST_GROUP)), 0)
    return np.append(np.ceil(largest * 2.0 ** (-np.arange(steps + 1) / 2)), 0.0)


@dataclass(frozen=True, eq=False)
class ScoreGroups:
    """Groups whose members a model is sure enough about.

    Attributes
    ----------
    thresholds : float64 array of shape (g, s)
        The least score of a group's members at each step of the ladder, ∞ where it is left out.
    usual : float64 array of shape (g,)
        The mean scores: a row belongs where its score exceeds the usual by the largest factor.
    ladder : Ladder
        What to expect of them.
    """

    thresholds: FloatArray
    usual: FloatArray
    ladder: Ladder

    def assign(self, scores: FloatArray, step: IndexArray) -> IntArray:
        """Return the group of each row at the given steps, int32 (n,), −1 for none."""
        group = _likeliest(scores, self.usual)
        rows = np.arange(len(scores))
        least = self.thresholds[np.arange(len(step)), step]
        return np.where(scores[rows, group] >= least[group], group, -1).astype(np.int32)


def score_groups(scores: FloatArray, meant: IntArray, scale: float) -> ScoreGroups:
    """Group rows by which output is likelier than usual, ordered by how likely it is.

    Parameters
    ----------
    scores : float64 array of shape (n, g)
        P(output = g | x) from a model that never saw these rows' released labels.
    meant : int32 array of shape (n,)
        The group whose output each row was released with: these rows' outcomes decide which
        groups are tested, on other rows.
    scale : float
        How many times as many rows will be tested.
    """
    usual = np.maximum(scores.mean(axis=0), 1e-12)
    group = _likeliest(scores, usual)
    thresholds, sizes, right = [], [], []
    for g in range(scores.shape[1]):
        rows = np.flatnonzero(group == g)
        rows = rows[np.argsort(-scores[rows, g], kind="stable")]
        grid = group_sizes(len(rows))
        steps = grid.astype(np.int64)
        hits = np.concatenate([[0], np.cumsum(meant[rows] == g)])[steps]
        # One standard error below what was seen, nothing for one hit: a small lucky group is no
        # good plan.
        purity = np.where(hits > 1, clopper_pearson_lower(hits, np.maximum(grid, 1), 0.16), 0.0)
        thresholds.append(np.append(scores[rows[steps[:-1] - 1], g], np.inf))
        sizes.append(grid * scale)
        right.append(purity * grid * scale)
    ladder = Ladder(_rectangle(sizes, 0.0), _rectangle(right, 0.0))
    return ScoreGroups(_rectangle(thresholds, np.inf), usual, ladder)


def _likeliest(scores: FloatArray, usual: FloatArray) -> IndexArray:
    return np.asarray((scores / usual).argmax(axis=1))


def _rectangle(rows: list[FloatArray], fill: float) -> FloatArray:
    width = max(len(row) for row in rows)
    return np.stack([np.append(row, np.full(width - len(row), fill)) for row in rows])
