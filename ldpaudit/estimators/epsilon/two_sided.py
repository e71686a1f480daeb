"""ε from one event: how often labels that make it likely have it, against labels that do not.

Which event, and which labels, is chosen from the true labels' frequencies and a presumed channel,
before any outcome is seen. So the bound is valid whatever the channel really is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ldpaudit.estimators.epsilon.bounds import CountTable, EpsilonBound, two_sided_bound
from ldpaudit.estimators.intervals.binomial import trials_upper
from ldpaudit.estimators.intervals.odds_ratio import log_odds_ratio_lower
from ldpaudit.release import FloatArray, IndexArray, IntArray

SHARES = (0.0, 0.02, 0.1, 0.5)
"""Of the error probability, for how often the labels that make the event unlikely have it."""
_MOST_OUTPUTS = 64
_SLACKS = (1e-9, 0.1, 0.25, 0.5)
"""How far from an output's extreme log-probabilities labels count, as shares of their range."""
_HALF = SHARES[-1]
_PILOT_Z = 1.7
_IMPOSSIBLE = 1e-300


@dataclass(frozen=True, eq=False)
class TwoSidedPlan:
    """Two groups of labels and the event that is to distinguish them, fixed beforehand.

    Attributes
    ----------
    groups : int32 array of shape (k,)
        1 for labels that make the event likelier, 0 for the others, −1 for labels left out.
    guess : int32 array of shape (m,)
        1 for the outputs of the event, 0 for all others, −1 for outputs left out (with share 0).
    share : float
        Of the error probability, for how often the event happens in group 0. With 0 only the odds
        ratio is bounded.
    """

    groups: IntArray
    guess: IntArray
    share: float

    @property
    def single(self) -> bool:
        """Whether both groups are one label, so that rows of a group are alike."""
        return bool(np.count_nonzero(self.groups == 0) == 1 == np.count_nonzero(self.groups == 1))

    def same_event(self, other: "TwoSidedPlan") -> bool:
        """Return whether both bound the odds ratio of the same labels and outputs."""
        alike = np.array_equal(self.guess, other.guess) and self.share == other.share
        return alike and np.array_equal(self.groups, other.groups)

    def table(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rows of each group without and with the event, shape (2, 2)."""
        rows = [counts[self.groups == g].sum(axis=0) for g in (0, 1)]
        return np.array([[row[self.guess == g].sum() for g in (0, 1)] for row in rows])

    def bound(self, counts: CountTable, alpha: float) -> EpsilonBound:
        """Bound ε at level 1 − alpha from rows counted by label and output, (k, m)."""
        table = self.table(counts)
        if self.single:
            return event_bound(table, self.share, alpha)
        return two_sided_bound(table[:, 1].tolist(), table.sum(axis=1).tolist(), alpha)


def event_bound(table: IndexArray, share: float, alpha: float) -> EpsilonBound:
    """Bound ε by the odds ratio of an event in two labels, and by how rare it is in one of them.

    With P(event | 0) ≤ u and odds ratio θ ≥ t the ratio of the two probabilities is at least
    1/((1 − u)/t + u), which is at most e^ε. And θ ≤ e^{2ε}, as a product of two such ratios. For a
    rare event that is as good as one error probability for both counts; the two rates bounded one
    by one need two. The odds ratio is tight for symmetric channels, whatever the labels'
    frequencies.

    Parameters
    ----------
    table : int64 array of shape (2, 2)
        Rows of label 0 and of label 1, without and with the event.
    share : float
        Of alpha, for u.
    alpha : float
        One-sided error probability.

    References
    ----------
    Cornfield (1956), A statistical problem arising from retrospective studies.
    """
    log_theta = log_odds_ratio_lower(table, (1 - share) * alpha)
    epsilon = max(log_theta / 2, 0.0)
    if share > 0 and log_theta > 0:
        often = trials_upper(table[0, 1], table[0].sum(), share * alpha)
        with np.errstate(divide="ignore"):
            ratio = -np.logaddexp(np.log1p(-often) - log_theta, np.log(often))
        epsilon = max(epsilon, float(ratio))
    return EpsilonBound(epsilon, alpha, int(table.sum()), "two-sided")


def odds_ratio_plan(sizes: IndexArray, channel: FloatArray) -> TwoSidedPlan:
    """Return the odds ratio of the two commonest labels and the two outputs that suit it best.

    The only plan whose bound survives a selection of rows by their released label.
    """
    one, zero = np.argsort(-sizes, kind="stable")[:2]
    apart = channel[one] - channel[zero]
    groups, guess = (np.full(size, -1, np.int32) for size in channel.shape)
    groups[zero], groups[one], guess[apart.argmin()], guess[apart.argmax()] = 0, 1, 0, 1
    return TwoSidedPlan(groups, guess, 0.0)


def best_two_sided(
    sizes: IndexArray, channel: FloatArray, alpha: float
) -> tuple[TwoSidedPlan, float]:
    """Return the plan with the largest bound to be expected under a presumed channel, and that.

    Parameters as in :func:`ldpaudit.estimators.epsilon.accuracy_design.best_plan`. What is expected
    is approximate: normal distributions of the logarithms of counts.
    """
    odds, expected = odds_ratio_plan(sizes, channel), 0.0
    if (odds.guess >= 0).all():
        table = odds.table(sizes[:, None] * channel)
        expected = float(_expected_bound(table[:, 1], table.sum(axis=1), 0.0, alpha))
    best = odds, expected
    found = list(_groups(sizes, channel))
    if not found:
        return best
    groups = np.unique(np.stack(found), axis=0)
    member = groups == np.array([1, 0])[:, None, None]
    rows = np.where(member, sizes, 0).sum(axis=2, dtype=np.float64)[:, :, None]
    hits = np.where(member, sizes, 0) @ channel
    # The event that suits two groups best has the outputs with the largest likelihood ratios.
    ratios = (hits[0] / rows[0]) / np.maximum(hits[1] / rows[1], _IMPOSSIBLE)
    order = np.argsort(-ratios, axis=1, kind="stable")
    hits = np.cumsum(np.take_along_axis(hits, order[None], axis=2), axis=2)[:, :, :-1]
    single = (member.sum(axis=2) == 1).all(axis=0)[:, None]
    for share in SHARES:
        values = _expected_bound(hits[::-1], rows[::-1], share, alpha)
        if share == _HALF:
            values = np.where(single, values, _expected_of_groups(hits[::-1], rows[::-1], alpha))
        else:
            values = np.where(single, values, -np.inf)
        place, last = np.unravel_index(values.argmax(), values.shape)
        if values[place, last] > best[1] + 1e-9:
            guess = np.zeros(channel.shape[1], np.int32)
            guess[order[place, : last + 1]] = 1
            best = TwoSidedPlan(groups[place], guess, share), float(values[place, last])
    return best


def _groups(sizes: IndexArray, channel: FloatArray) -> Iterator[IntArray]:
    """Yield pairs of groups of labels, int32 of shape (k,), that some output may distinguish."""
    present = np.flatnonzero(sizes > 0)
    within = channel[present]
    logs = np.log(np.maximum(within, np.maximum(within.max(axis=0) * 1e-6, _IMPOSSIBLE)))
    unsure = _PILOT_Z / np.sqrt(sizes[present, None] * within + 0.5)
    high, low = logs.max(axis=0), logs.min(axis=0)
    surest = (logs - unsure).argmax(axis=0), (logs + unsure).argmin(axis=0)
    worth = (logs - unsure).max(axis=0) - (logs + unsure).min(axis=0)
    for z in np.argsort(-worth, kind="stable")[:_MOST_OUTPUTS]:
        spread, column = high[z] - low[z], logs[:, z]
        if spread <= _SLACKS[0]:
            continue
        top, bottom = column >= high[z] - _SLACKS[0], column <= low[z] + _SLACKS[0]
        ones = np.arange(len(present)) == surest[0][z], np.arange(len(present)) == surest[1][z]
        pairs = [ones, (top, ~top), (~bottom, bottom)]
        for slack in _SLACKS:
            likely = column >= high[z] - slack * spread
            pairs.append((likely, ~likely & (column <= low[z] + slack * spread)))
        for one, other in pairs:
            groups = np.full(len(sizes), -1, np.int32)
            groups[present[other]], groups[present[one]] = 0, 1
            if (groups == 0).any() and (groups == 1).any():
                yield groups


def _expected_bound(hits: FloatArray, rows: FloatArray, share: float, alpha: float) -> FloatArray:
    """Return about what :func:`event_bound` will be; the first axis is label 0, label 1."""
    x, y = hits + 0.5, rows - hits + 0.5
    theta = np.log(x[1]) + np.log(y[0]) - np.log(x[0]) - np.log(y[1])
    theta = theta + ndtri((1 - share) * alpha) * np.sqrt((1 / x + 1 / y).sum(axis=0))
    if share == 0:
        return np.asarray(theta / 2)
    spread = np.sqrt(y[0] / (x[0] * (x[0] + y[0])))
    often = np.minimum(x[0] / (x[0] + y[0]) * np.exp(-ndtri(share * alpha) * spread), 1 - 1e-12)
    return np.asarray(-np.logaddexp(np.log1p(-often) - theta, np.log(often)))


def _expected_of_groups(hits: FloatArray, rows: FloatArray, alpha: float) -> FloatArray:
    """Return about what the bound from the two rates will be."""
    x, y = hits + 0.5, rows - hits + 0.5
    spread = np.sqrt(y / (x * (x + y))).sum(axis=0)
    ratio = np.log(x[1] / (x[1] + y[1])) - np.log(x[0] / (x[0] + y[0]))
    return np.asarray(ratio + ndtri(alpha / 2) * spread)
