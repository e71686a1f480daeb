"""Which guess, which event and which rows bound ε best, chosen before any outcome is seen.

A design is chosen from the true labels' frequencies and a presumed channel only, so its bounds are
valid whatever the channel really is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ldpaudit.estimators.epsilon.bounds import (
    accuracy_epsilon,
    epsilon_of_accuracy,
    event_epsilon,
    two_sided_epsilon,
)
from ldpaudit.estimators.intervals.binomial import score_lower, trials_lower
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

LowerBound = Callable[[FloatArray, FloatArray, float], FloatArray]
Option = tuple[IntArray, IntArray]
"""A partition of labels into groups, −1 for labels left out, and the group guessed by output."""

SHARES = (0.0, 0.02, 0.1, 0.5)
"""Of the error probability, for how often the labels that make the event unlikely have it."""
# Nine equally likely values of a standard normal variable: a bound that collapses when the
# accuracy comes out a little lower than expected is no good plan.
_NODES = ndtri((np.arange(9) + 0.5) / 9)
_KEPT_SHARES = 1 / (1 + np.exp(-np.linspace(-4, 4, 33)))
_MOST_OUTPUTS = 64
_FINALISTS = 6
"""Plans that are compared by their exact bounds, the best of all by an approximation."""
_AT_ONCE = 4_000_000
"""Numbers in one array."""
_SLACKS = (1e-9, 0.1, 0.25, 0.5)
"""How far from an output's extreme log-probabilities labels count, as shares of their range."""
_PILOT_Z = 1.7
_IMPOSSIBLE = 1e-300


@dataclass(frozen=True, eq=False)
class AccuracyPlan:
    """A guess of a (merged) label, and the rows on which it is scored.

    Attributes
    ----------
    groups : int32 array of shape (k,)
        The group of each label, −1 for a label that is left out.
    guess : int32 array of shape (m,)
        The group guessed at each output, −1 for none.
    keep : int64 array of shape (k,)
        Rows of each label to count; which ones is drawn at random.
    """

    groups: IntArray
    guess: IntArray
    keep: IndexArray

    @property
    def sizes(self) -> IndexArray:
        """Rows counted in each group, int64 of shape (g,)."""
        used = self.groups >= 0
        return np.bincount(self.groups[used], weights=self.keep[used]).astype(np.int64)

    @property
    def right(self) -> BoolArray:
        """Which outputs are right for which label, bool of shape (k, m)."""
        return np.asarray((self.groups[:, None] == self.guess) & (self.groups[:, None] >= 0))

    def epsilon(self, correct: npt.ArrayLike, alpha: float) -> FloatArray:
        """Bound ε at level 1 − alpha from numbers of right guesses."""
        return accuracy_epsilon(correct, self.sizes, alpha)


def expected_bound(
    correct: FloatArray, sizes: FloatArray, alpha: float, lower: LowerBound = trials_lower
) -> FloatArray:
    """Return the average bound over what the number of right guesses may come out to be.

    Parameters
    ----------
    correct : float64 array of shape (...)
        Expected right guesses.
    sizes : array of shape (..., g)
        Rows of each group.
    alpha : float
        One-sided error probability of the bound.
    lower : callable
        The lower bound of the mean chance, from a count, the trials and ``alpha``.

    Returns
    -------
    float64 array of shape (...)
        Nats; an average over nine equally likely outcomes.
    """
    n = np.sum(sizes, axis=-1)
    spread = np.sqrt(np.maximum(correct * (1 - correct / n), 0.0))
    outcome = np.clip(
        np.floor(correct[..., None] + spread[..., None] * _NODES + 0.5), 0, n[..., None]
    )
    level = lower(outcome, n[..., None], alpha)
    groups = np.asarray(sizes, dtype=np.float64)[..., None, :]
    return np.asarray(epsilon_of_accuracy(level, groups).mean(axis=-1))


def best_plan(
    sizes: IndexArray, channel: FloatArray, alpha: float, lower: LowerBound = trials_lower
) -> tuple[AccuracyPlan, float]:
    """Return the plan with the largest expected bound under a presumed channel, and that bound.

    Parameters
    ----------
    sizes : int64 array of shape (k,)
        Rows of each true label; at least two labels have some.
    channel : float64 array of shape (k, m)
        The presumed channel.
    alpha : float
        The level at which plans are compared.
    lower : callable
        The lower bound by which they are compared; Wilson's is quick.
    """
    options = list(_partitions(sizes, channel))
    if len(options) > _FINALISTS:
        roughly = [value for _, value in _best_rows(options, sizes, channel, alpha, score_lower)]
        options = [options[i] for i in sorted(np.argsort(roughly)[::-1][:_FINALISTS])]
    best, *others = _best_rows(options, sizes, channel, alpha, lower)
    for option in others:
        if option[1] > best[1] + 1e-9:
            best = option
    return best


def _partitions(sizes: IndexArray, channel: FloatArray) -> Iterator[Option]:
    """Yield every label as a group, then two groups of labels and two of outputs.

    For each of the outputs that tell labels apart best, the labels that make it likely against
    those that do not, by that output alone and by the likelihood ratio of the two groups.
    """
    present = np.flatnonzero(sizes > 0)
    within = channel[present]
    groups = np.full(len(sizes), -1, dtype=np.int32)
    groups[present] = np.arange(len(present))
    yield groups, within.argmax(axis=0).astype(np.int32)
    gain = np.sqrt(within.max(axis=0)) - np.sqrt(within.min(axis=0))
    for z in np.argsort(-gain, kind="stable")[:_MOST_OUTPUTS]:
        if gain[z] <= 0:
            continue
        column = within[:, z]
        top, bottom = column == column.max(), column == column.min()
        alone = (np.arange(channel.shape[1]) == z).astype(np.int32)
        for one, other in ((top, bottom), (top, ~top), (~bottom, bottom)):
            groups = _pair(sizes, present, one, other)
            yield groups, alone
            rows = [
                sizes[groups == g] @ channel[groups == g] / sizes[groups == g].sum() for g in (0, 1)
            ]
            likelier = (rows[1] > rows[0]).astype(np.int32)
            if not np.array_equal(likelier, alone):
                yield groups, likelier


def _pair(sizes: IndexArray, present: IndexArray, one: BoolArray, other: BoolArray) -> IntArray:
    groups = np.full(len(sizes), -1, dtype=np.int32)
    groups[present[other]], groups[present[one]] = 0, 1
    return groups


def _best_rows(
    options: list[Option],
    sizes: IndexArray,
    channel: FloatArray,
    alpha: float,
    lower: LowerBound,
) -> list[tuple[AccuracyPlan, float]]:
    """Return for each (groups, guess) the rows that bound ε best, and the expected bound."""
    found: dict[int, tuple[AccuracyPlan, float]] = {}
    at_once = max(1, _AT_ONCE // max(len(_KEPT_SHARES) * len(sizes), channel.size))
    numbers = [int(groups.max()) + 1 for groups, _ in options]
    for number in sorted({*numbers}):
        alike = [place for place, of in enumerate(numbers) if of == number]
        for start in range(0, len(alike), at_once):
            some = alike[start : start + at_once]
            best = _best_of_alike([options[place] for place in some], sizes, channel, alpha, lower)
            found.update(zip(some, best, strict=True))
    return [found[place] for place in range(len(options))]


def _best_of_alike(
    options: list[Option],
    sizes: IndexArray,
    channel: FloatArray,
    alpha: float,
    lower: LowerBound,
) -> Iterator[tuple[AccuracyPlan, float]]:
    """Yield the same for options of one number of groups, all in a few array operations."""
    groups, guess = (np.stack(part) for part in zip(*options, strict=True))
    member = (groups[:, :, None] == np.arange(groups.max() + 1)).astype(np.float64)
    fractions = _fractions(sizes @ member)
    # Rows kept of each label: shape (options, candidates, k); a label left out is in no group.
    keep = np.floor(fractions @ member.transpose(0, 2, 1) * sizes + 1e-9)
    right = (groups[:, :, None] == guess[:, None, :]) & (groups[:, :, None] >= 0)
    grouped, correct = keep @ member, keep @ (channel * right).sum(axis=2)[:, :, None]
    usable = (grouped > 0).all(axis=2)
    values = np.full(usable.shape, -np.inf)
    values[usable] = expected_bound(correct[usable][:, 0], grouped[usable], alpha, lower)
    for place, best in enumerate(values.argmax(axis=1)):
        rows = keep[place, best].astype(np.int64)
        yield AccuracyPlan(groups[place], guess[place], rows), float(values[place, best])


def _fractions(totals: FloatArray) -> FloatArray:
    """Return candidate fractions of each group to keep, all rows first.

    ``totals`` has shape (options, g), the fractions (options, candidates, g).
    """
    every = np.ones((len(totals), 1, totals.shape[1]))
    if totals.shape[1] == 2:
        # Every share of the first group, with as many rows as the two groups allow.
        shares = np.stack([_KEPT_SHARES, 1 - _KEPT_SHARES], axis=1)
        rows = (totals[:, None, :] / shares).min(axis=2, keepdims=True)
        thinned = rows * shares / totals[:, None, :]
    else:
        caps = np.geomspace(totals.min(axis=1), totals.max(axis=1), 24, axis=1)[:, :, None]
        thinned = np.minimum(totals[:, None, :], caps) / totals[:, None, :]
    return np.concatenate([every, np.minimum(thinned, 1.0)], axis=1)


@dataclass(frozen=True, eq=False)
class EventPlan:
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

    def same_event(self, other: "EventPlan") -> bool:
        """Return whether both bound the odds ratio of the same labels and outputs."""
        alike = np.array_equal(self.guess, other.guess) and self.share == other.share
        return alike and np.array_equal(self.groups, other.groups)

    def table(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rows of each group without and with the event, shape (..., 2, 2).

        ``counts``: rows by label and output, shape (..., k, m).
        """
        outputs = np.stack([counts[..., self.guess == g].sum(axis=-1) for g in (0, 1)], axis=-1)
        return np.stack([outputs[..., self.groups == g, :].sum(axis=-2) for g in (0, 1)], axis=-2)

    def epsilon(self, tables: npt.NDArray[Any], alpha: float, *, exact: bool = True) -> FloatArray:
        """Bound ε at level 1 − alpha from tables of :meth:`table`."""
        if self.single:
            return event_epsilon(tables, self.share, alpha, exact=exact)
        return two_sided_epsilon(tables[..., 1], tables.sum(axis=-1), alpha)


def odds_ratio_plan(sizes: IndexArray, channel: FloatArray) -> EventPlan:
    """Return the odds ratio of the two commonest labels and the two outputs that suit it best.

    The only plan whose bound survives a selection of rows by their released label.
    """
    one, zero = np.argsort(-sizes, kind="stable")[:2]
    apart = channel[one] - channel[zero]
    groups, guess = (np.full(size, -1, np.int32) for size in channel.shape)
    groups[zero], groups[one], guess[apart.argmin()], guess[apart.argmax()] = 0, 1, 0, 1
    return EventPlan(groups, guess, 0.0)


def best_event(sizes: IndexArray, channel: FloatArray, alpha: float) -> tuple[EventPlan, float]:
    """Return the plan with the largest bound to be expected under a presumed channel, and that.

    Parameters as in :func:`best_plan`. What is expected is approximate: normal distributions of the
    logarithms of counts.
    """
    odds, expected = odds_ratio_plan(sizes, channel), 0.0
    if (odds.guess >= 0).all():
        table = odds.table(sizes[:, None] * channel)
        expected = float(_expected_event(table[:, 1], table.sum(axis=1), 0.0, alpha))
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
        values = _expected_event(hits[::-1], rows[::-1], share, alpha)
        if share == SHARES[-1]:
            values = np.where(single, values, _expected_rates(hits[::-1], rows[::-1], alpha))
        else:
            values = np.where(single, values, -np.inf)
        place, last = np.unravel_index(values.argmax(), values.shape)
        if values[place, last] > best[1] + 1e-9:
            guess = np.zeros(channel.shape[1], np.int32)
            guess[order[place, : last + 1]] = 1
            best = EventPlan(groups[place], guess, share), float(values[place, last])
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
            groups = _pair(sizes, present, one, other)
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
    spread = np.sqrt(y / (x * (x + y))).sum(axis=0)
    ratio = np.log(x[1] / (x[1] + y[1])) - np.log(x[0] / (x[0] + y[0]))
    return np.asarray(ratio + ndtri(alpha / 2) * spread)
