"""The bound by how often the best fixed guess is right: which groups of labels and outputs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ldpaudit.estimators.epsilon.bounds import epsilon_of_accuracy
from ldpaudit.estimators.intervals.binomial import score_lower, trials_lower
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

MOST_OUTPUTS = 64
_KEPT_SHARES = 1 / (1 + np.exp(-np.linspace(-4, 4, 33)))
_FINALISTS = 6  # plans compared by their exact bounds, the best of all by an approximation
LowerBound = Callable[[FloatArray, FloatArray, float], FloatArray]


@dataclass(frozen=True, eq=False)
class AccuracyPlan:
    """A guess of a (merged) label, and the rows on which it is scored."""

    groups: IntArray
    """Int32 array of shape (k,): the group of each label, −1 for a label that is left out."""
    guess: IntArray
    """Int32 array of shape (m,): the group guessed at each output, −1 for none."""
    keep: IndexArray
    """Int64 array of shape (k,): rows of each label to count; which ones is drawn at random."""

    @property
    def sizes(self) -> IndexArray:
        """Rows counted in each group, int64 of shape (g,)."""
        used = self.groups >= 0
        return np.bincount(self.groups[used], weights=self.keep[used]).astype(np.int64)

    @property
    def right(self) -> BoolArray:
        """Which outputs are right for which label, bool of shape (k, m)."""
        return np.asarray((self.groups[:, None] == self.guess) & (self.groups[:, None] >= 0))


def expected_bound(
    correct: FloatArray, sizes: FloatArray, alpha: float, lower: LowerBound = trials_lower
) -> FloatArray:
    """Return the average bound over what the number of right guesses may come out to be.

    Nine equally likely outcomes: a bound that collapses when the accuracy is a little lower than
    expected is no good plan. ``correct`` (...), ``sizes`` (..., g).
    """
    n, nodes = np.sum(sizes, axis=-1), ndtri((np.arange(9) + 0.5) / 9)
    spread = np.sqrt(np.maximum(correct * (1 - correct / n), 0.0))
    outcome = np.floor(correct[..., None] + spread[..., None] * nodes + 0.5)
    level = lower(np.clip(outcome, 0, n[..., None]), n[..., None], alpha)
    groups = np.asarray(sizes, dtype=np.float64)[..., None, :]
    return np.asarray(epsilon_of_accuracy(level, groups).mean(axis=-1))


def best_plan(
    sizes: IndexArray, channel: FloatArray, alpha: float, lower: LowerBound = trials_lower
) -> tuple[AccuracyPlan, float]:
    """Return the plan with the largest expected bound under a presumed channel, and that bound."""
    different = dict[bytes, tuple[IntArray, IntArray]]()
    for option in _partitions(sizes, channel):
        different.setdefault(_named(*option), option)
    options = list(different.values())
    if len(options) > _FINALISTS:
        roughly = [_best_rows(*one, sizes, channel, alpha, score_lower)[1] for one in options]
        options = [options[i] for i in sorted(np.argsort(roughly)[::-1][:_FINALISTS])]
    plans = [_best_rows(*one, sizes, channel, alpha, lower) for one in options]
    best = plans[0]
    for plan in plans[1:]:
        best = plan if plan[1] > best[1] + 1e-9 else best
    return best


def _partitions(sizes: IndexArray, channel: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield groups of labels and guessed groups: every label on its own, then two groups."""
    # For each of the outputs that distinguish labels best, the labels that make it likely against
    # those that do not, by that output alone and by the likelihood ratio of the two groups.
    present = np.flatnonzero(sizes > 0)
    within = channel[present]
    groups = np.full(len(sizes), -1, dtype=np.int32)
    groups[present] = np.arange(len(present))
    yield groups, within.argmax(axis=0).astype(np.int32)
    gain = np.sqrt(within.max(axis=0)) - np.sqrt(within.min(axis=0))
    for z in np.argsort(-gain, kind="stable")[:MOST_OUTPUTS]:
        if gain[z] <= 0:
            return
        top, bottom = within[:, z] == within[:, z].max(), within[:, z] == within[:, z].min()
        alone = (np.arange(channel.shape[1]) == z).astype(np.int32)
        for one, other in ((top, bottom), (top, ~top), (~bottom, bottom)):
            groups = pair(sizes, present, one, other)
            yield groups, alone
            of = [groups == g for g in (0, 1)]
            rows = [sizes[g] @ channel[g] / sizes[g].sum() for g in of]
            likelier = (rows[1] > rows[0]).astype(np.int32)
            if not np.array_equal(likelier, alone):
                yield groups, likelier


def _named(groups: IntArray, guess: IntArray) -> bytes:
    """Return a key that stays when two groups change their names: their expected bounds are one."""
    both = np.concatenate([groups, guess])
    swapped = groups.max() == 1 and both[both >= 0][0] == 1
    return np.where(swapped & (both >= 0), 1 - both, both).tobytes()


def pair(sizes: IndexArray, present: IndexArray, one: BoolArray, other: BoolArray) -> IntArray:
    """Return the groups of two sets of present labels: 1 for ``one``, 0 for ``other``, else −1."""
    groups = np.full(len(sizes), -1, dtype=np.int32)
    groups[present[other]], groups[present[one]] = 0, 1
    return groups


def _best_rows(
    groups: IntArray,
    guess: IntArray,
    sizes: IndexArray,
    channel: FloatArray,
    alpha: float,
    lower: LowerBound,
) -> tuple[AccuracyPlan, float]:
    """Return the rows of each label that bound ε best by a guess, and the expected bound."""
    member = (groups[:, None] == np.arange(groups.max() + 1)).astype(np.float64)
    totals = sizes @ member
    if len(totals) == 2:
        # Every share of the first group, with as many rows as the two groups allow.
        shares = np.stack([_KEPT_SHARES, 1 - _KEPT_SHARES], axis=1)
        thinned = (totals / shares).min(axis=1, keepdims=True) * shares / totals
    else:
        thinned = np.minimum(totals, np.geomspace(totals.min(), totals.max(), 24)[:, None]) / totals
    fractions = np.concatenate([np.ones((1, len(totals))), np.minimum(thinned, 1.0)])
    keep = np.floor(fractions @ member.T * sizes + 1e-9)
    right = (groups[:, None] == guess) & (groups[:, None] >= 0)
    grouped, correct = keep @ member, keep @ (channel * right).sum(axis=1)
    usable, values = (grouped > 0).all(axis=1), np.full(len(keep), -np.inf)
    values[usable] = expected_bound(correct[usable], grouped[usable], alpha, lower)
    best = int(values.argmax())
    return AccuracyPlan(groups, guess, keep[best].astype(np.int64)), float(values[best])
