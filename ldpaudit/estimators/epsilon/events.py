"""The bound by one event: which labels, which outputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ldpaudit.error_budget import EVENTS
from ldpaudit.estimators.epsilon.accuracy import MOST_OUTPUTS, pair
from ldpaudit.estimators.epsilon.bounds import event_epsilon, event_exceeds, two_sided_epsilon
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

_SLACKS = (1e-9, 0.1, 0.25, 0.5)  # from an output's extreme log-probability, shares of the range
_IMPOSSIBLE = 1e-300


@dataclass(frozen=True, eq=False)
class EventPlan:
    """Two groups of labels and the event that is to distinguish them, fixed beforehand."""

    groups: IntArray
    """Int32 array of shape (k,): 1 for labels that make the event likelier, 0 for the others, −1
    for labels left out."""
    guess: IntArray
    """Int32 array of shape (m,): 1 for the outputs of the event, 0 for all others, −1 for outputs
    left out (with share 0)."""
    share: float
    """Of the error probability, for how often the event happens in group 0. With 0 only the odds
    ratio is bounded."""

    def table(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rows of each group without and with the event, shape (..., 2, 2)."""
        outputs = np.stack([counts[..., self.guess == g].sum(axis=-1) for g in (0, 1)], axis=-1)
        return np.stack([outputs[..., self.groups == g, :].sum(axis=-2) for g in (0, 1)], axis=-2)

    def epsilon(self, tables: npt.NDArray[Any], alpha: float) -> FloatArray:
        """Bound ε at level 1 − alpha from tables of :meth:`table`.

        An odds ratio is that of rows that are alike: of single labels.
        """
        if self._single:
            return event_epsilon(tables, self.share, alpha)
        return two_sided_epsilon(tables[..., 1], tables.sum(axis=-1), alpha)

    def exceeds(self, tables: npt.NDArray[Any], alpha: float, limit: float) -> BoolArray:
        """Return whether :meth:`epsilon` is above a limit ≥ 0, bool (...), for simulations."""
        if self._single:
            return event_exceeds(tables, self.share, alpha, limit)
        return np.asarray(self.epsilon(tables, alpha) > limit)

    @property
    def _single(self) -> bool:
        return bool(np.count_nonzero(self.groups == 0) == 1 == np.count_nonzero(self.groups == 1))


def odds_ratio_plan(sizes: IndexArray, channel: FloatArray) -> EventPlan:
    """Return the odds ratio of the two commonest labels and the two outputs that suit it best."""
    one, zero = np.argsort(-sizes, kind="stable")[:2]
    apart = channel[one] - channel[zero]
    groups, guess = (np.full(size, -1, np.int32) for size in channel.shape)
    groups[zero], groups[one], guess[apart.argmin()], guess[apart.argmax()] = 0, 1, 0, 1
    return EventPlan(groups, guess, 0.0)


def best_event(sizes: IndexArray, channel: FloatArray, alpha: float) -> tuple[EventPlan, float]:
    """Return the plan with the largest bound to be expected under a presumed channel, and that."""
    best = odds_ratio_plan(sizes, channel), 0.0
    if (best[0].guess >= 0).all():
        table = best[0].table(sizes[:, None] * channel)
        best = best[0], float(_expected_event(table[:, 1], table.sum(axis=1), 0.0, alpha))
    found = list(_groups(sizes, channel))
    if not found:
        return best
    groups = np.unique(np.stack(found), axis=0)
    member = groups == np.array([1, 0])[:, None, None]
    # The outputs of largest likelihood ratio, as many as are best: arrays (2, pairs, outputs).
    rows = np.where(member, sizes, 0).sum(axis=2, dtype=np.float64)[:, :, None]
    hits = np.where(member, sizes, 0) @ channel
    ratios = hits[0] / rows[0] / np.maximum(hits[1] / rows[1], _IMPOSSIBLE)
    order = np.argsort(-ratios, axis=1, kind="stable")
    hits = np.cumsum(np.take_along_axis(hits, order[None], axis=2), axis=2)[::-1, :, :-1]
    single = (member.sum(axis=2) == 1).all(axis=0)[:, None]
    for share in EVENTS:
        pairs: Any = -np.inf if share < EVENTS[-1] else _expected_rates(hits, rows[::-1], alpha)
        values = np.where(single, _expected_event(hits, rows[::-1], share, alpha), pairs)
        place, last = np.unravel_index(values.argmax(), values.shape)
        if values[place, last] > best[1] + 1e-9:
            guess = np.zeros(channel.shape[1], np.int32)
            guess[order[place, : last + 1]] = 1
            best = EventPlan(groups[place], guess, share), float(values[place, last])
    return best


def _groups(sizes: IndexArray, channel: FloatArray) -> Iterator[IntArray]:
    """Yield pairs of groups of labels, int32 of shape (k,), that some output may distinguish."""
    # Of each output the labels of extreme probability, those that are surely so although few rows
    # were seen of them, and those near to the extremes.
    present = np.flatnonzero(sizes > 0)
    within = channel[present]
    logs = np.log(np.maximum(within, np.maximum(within.max(axis=0) * 1e-6, _IMPOSSIBLE)))
    unsure = 1.7 / np.sqrt(sizes[present, None] * within + 0.5)
    high, low = logs.max(axis=0), logs.min(axis=0)
    surest = (logs - unsure).argmax(axis=0), (logs + unsure).argmin(axis=0)
    worth = (logs - unsure).max(axis=0) - (logs + unsure).min(axis=0)
    for z in np.argsort(-worth, kind="stable")[:MOST_OUTPUTS]:
        spread, column = high[z] - low[z], logs[:, z]
        if spread <= _SLACKS[0]:
            continue
        top, bottom = column >= high[z] - _SLACKS[0], column <= low[z] + _SLACKS[0]
        one, other = (np.arange(len(present)) == end[z] for end in surest)
        pairs = [(one, other), (top, ~top), (~bottom, bottom)]
        for slack in _SLACKS:
            likely = column >= high[z] - slack * spread
            pairs.append((likely, ~likely & (column <= low[z] + slack * spread)))
        for one, other in pairs:
            groups = pair(sizes, present, one, other)
            if (groups == 0).any() and (groups == 1).any():
                yield groups


def _expected_event(hits: FloatArray, rows: FloatArray, share: float, alpha: float) -> FloatArray:
    """Return about what the event's bound will be; the first axis is label 0, label 1."""
    x, y = hits + 0.5, rows - hits + 0.5
    theta = np.log(x[1]) + np.log(y[0]) - np.log(x[0]) - np.log(y[1])
    theta = theta + ndtri((1 - share) * alpha) * np.sqrt((1 / x + 1 / y).sum(axis=0))
    if share == 0:
        return np.asarray(theta / 2)
    spread = np.sqrt(y[0] / (x[0] * (x[0] + y[0])))
    often = np.minimum(x[0] / (x[0] + y[0]) * np.exp(-ndtri(share * alpha) * spread), 1 - 1e-12)
    return np.asarray(-np.logaddexp(np.log1p(-often) - theta, np.log(often)))


def _expected_rates(hits: FloatArray, rows: FloatArray, alpha: float) -> FloatArray:
    """Return about what the bound from the two rates will be."""
    x, y = hits + 0.5, rows - hits + 0.5
    ratio = np.log(x[1] / (x[1] + y[1])) - np.log(x[0] / (x[0] + y[0]))
    return np.asarray(ratio + ndtri(alpha / 2) * np.sqrt(y / (x * (x + y))).sum(axis=0))
