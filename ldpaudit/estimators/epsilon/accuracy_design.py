"""Choosing, before any outcome is seen, which guess and which rows bound ε best.

A plan says which labels count as one, what is guessed at each output, and how many rows of each
label are counted. It is chosen from the true labels' frequencies and a presumed channel only, so
its bound is valid whatever the channel really is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ldpaudit.estimators.epsilon.bounds import (
    CountTable,
    EpsilonBound,
    accuracy_bound,
    epsilon_of_accuracy,
)
from ldpaudit.estimators.intervals.binomial import score_lower, trials_lower
from ldpaudit.release import FloatArray, IndexArray, IntArray

LowerBound = Callable[[FloatArray, FloatArray, float], FloatArray]

# Nine equally likely values of a standard normal variable: a bound that collapses when the
# accuracy comes out a little lower than expected is no good plan.
_NODES = ndtri((np.arange(9) + 0.5) / 9)
_SHARES = 1 / (1 + np.exp(-np.linspace(-4, 4, 33)))
_MOST_OUTPUTS = 64
_FINALISTS = 6
"""Plans that are compared by their exact bounds, the best of all by an approximation."""
_AT_ONCE = 4_000_000
"""Numbers in one array."""


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
        sizes = np.bincount(self.groups[used], weights=self.keep[used])
        return np.asarray(sizes.astype(np.int64))

    def success(self, channel: FloatArray) -> FloatArray:
        """Return the probability of a right guess for each label, float64 of shape (k,)."""
        return np.asarray((channel * self._right()).sum(axis=1))

    def draw(self, counts: CountTable, rng: np.random.Generator) -> int:
        """Count the right guesses among randomly kept rows of each label."""
        right = (np.asarray(counts) * self._right()).sum(axis=1)
        return int(rng.hypergeometric(right, np.sum(counts, axis=1) - right, self.keep).sum())

    def bound(self, correct: int, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε at level 1 − alpha for a number of right guesses."""
        return accuracy_bound(correct, self.sizes, alpha)

    def _right(self) -> IntArray:
        hit = (self.groups[:, None] == self.guess) & (self.groups[:, None] >= 0)
        return np.asarray(hit.astype(np.int32))


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
    best, *others = _best_rows(_finalists(sizes, channel, alpha), sizes, channel, alpha, lower)
    for option in others:
        if option[1] > best[1] + 1e-9:
            best = option
    return best


def _finalists(
    sizes: IndexArray, channel: FloatArray, alpha: float
) -> list[tuple[IntArray, IntArray]]:
    """Return the partitions with the largest bounds by Wilson's formula, in their order."""
    options = list(_partitions(sizes, channel))
    if len(options) <= _FINALISTS:
        return options
    roughly = [value for _, value in _best_rows(options, sizes, channel, alpha, score_lower)]
    return [options[i] for i in sorted(np.argsort(roughly)[::-1][:_FINALISTS])]


def _partitions(sizes: IndexArray, channel: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (groups, guess): every label as a group, then :func:`collapses`."""
    present = np.flatnonzero(sizes > 0)
    groups = np.full(len(sizes), -1, dtype=np.int32)
    groups[present] = np.arange(len(present))
    yield groups, channel[present].argmax(axis=0).astype(np.int32)
    yield from collapses(sizes, channel)


def collapses(sizes: IndexArray, channel: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (groups, guess) that make two groups of labels and two of outputs out of a channel.

    For each of the outputs that tell labels apart best, the labels that make it likely against
    those that do not, by that output alone and by the likelihood ratio of the two groups.
    ``groups`` has shape (k,) with −1 for labels left out, ``guess`` shape (m,); both int32.
    """
    present = np.flatnonzero(sizes > 0)
    within = channel[present]
    high, low = within.max(axis=0), within.min(axis=0)
    gain = np.sqrt(high) - np.sqrt(low)
    for z in np.argsort(-gain, kind="stable")[:_MOST_OUTPUTS]:
        if gain[z] > 0:
            yield from _around_output(sizes, channel, int(z), present)


def _around_output(
    sizes: IndexArray, channel: FloatArray, z: int, present: IndexArray
) -> Iterator[tuple[IntArray, IntArray]]:
    column = channel[present, z]
    top, bottom = column == column.max(), column == column.min()
    for one, other in ((top, bottom), (top, ~top), (~bottom, bottom)):
        groups = np.full(len(sizes), -1, dtype=np.int32)
        groups[present[other]], groups[present[one]] = 0, 1
        alone = np.zeros(channel.shape[1], dtype=np.int32)
        alone[z] = 1
        yield groups, alone
        rows = [
            sizes[groups == g] @ channel[groups == g] / sizes[groups == g].sum() for g in (0, 1)
        ]
        likelier = (rows[1] > rows[0]).astype(np.int32)
        if not np.array_equal(likelier, alone):
            yield groups, likelier


def _best_rows(
    options: Sequence[tuple[IntArray, IntArray]],
    sizes: IndexArray,
    channel: FloatArray,
    alpha: float,
    lower: LowerBound = trials_lower,
) -> list[tuple[AccuracyPlan, float]]:
    """Return for each (groups, guess) the rows that bound ε best, and the expected bound."""
    found: dict[int, tuple[AccuracyPlan, float]] = {}
    at_once = max(1, _AT_ONCE // max(len(_SHARES) * len(sizes), channel.size))
    numbers = [int(groups.max()) + 1 for groups, _ in options]
    for number in sorted({*numbers}):
        alike = [place for place, of in enumerate(numbers) if of == number]
        for start in range(0, len(alike), at_once):
            some = alike[start : start + at_once]
            best = _best_of_alike([options[place] for place in some], sizes, channel, alpha, lower)
            found.update(zip(some, best, strict=True))
    return [found[place] for place in range(len(options))]


def _best_of_alike(
    options: Sequence[tuple[IntArray, IntArray]],
    sizes: IndexArray,
    channel: FloatArray,
    alpha: float,
    lower: LowerBound,
) -> Iterator[tuple[AccuracyPlan, float]]:
    """Yield the same for options of one number of groups, all in a few array operations."""
    groups = np.stack([option[0] for option in options])
    guess = np.stack([option[1] for option in options])
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
        shares = np.stack([_SHARES, 1 - _SHARES], axis=1)
        rows = (totals[:, None, :] / shares).min(axis=2, keepdims=True)
        thinned = rows * shares / totals[:, None, :]
    else:
        caps = np.geomspace(totals.min(axis=1), totals.max(axis=1), 24, axis=1)[:, :, None]
        thinned = np.minimum(totals[:, None, :], caps) / totals[:, None, :]
    return np.concatenate([every, np.minimum(thinned, 1.0)], axis=1)
