"""A lower bound of ε of several releases with noise of their own: the bounds of each add up.

With D_t(y → y') the largest log-ratio of release t, that of all releases is Σ_t D_t(y → y') for a
product channel. One event of each release is counted, fixed beforehand: a_t is its chance among
people of one true label y, b_t its mean chance among people of all others. Two ways to add up:

- *rates*: Σ_t log a_t − Σ_t log b_t; the mean over the other labels is no larger than the largest
  of them (Jensen), and Σ_t log b_t ≤ T log b̄.
- *accuracy*: the mean of D_t in both directions is at least the logit of p_t = (1 + a_t − b_t)/2
  (with d₀ + d₁ fixed the total variation is largest at d₀ = d₁, where it is tanh(d/2)), and the
  logit above 1/2 is convex: Σ_t logit(p_t) ≥ T logit(p̄).

Counts are sums of independent indicators, so Clopper–Pearson bounds hold (Hoeffding 1956): rows
must be independent, and given the true labels so must be the releases of one row.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.stats import binom

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray, IntArray
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper

_MOST_LABELS: Final = 16
_DESIGN_ALPHA: Final = 0.025
_SAME: Final = 1e-9
Way = Literal["rates", "accuracy"]
_WAYS: Final[tuple[Way, ...]] = ("accuracy", "rates")


@dataclass(frozen=True, eq=False)
class Tally:
    """How often the event of each release was seen; arrays of shape (t,).

    Attributes
    ----------
    inside, outside : int64 arrays
        Among rows of the label, and among the counted rows of all others.
    rows : tuple of two int
        How many of each are counted.
    """

    inside: IndexArray
    outside: IndexArray
    rows: tuple[int, int]


@dataclass(frozen=True, eq=False)
class AddedPlan:
    """What is counted in each release, fixed without a look at what was released.

    Attributes
    ----------
    way : {"rates", "accuracy"}
    label : int
        The label y that is told from all others.
    events : tuple of bool arrays of shape (m,)
        The outputs that speak for it, release by release.
    groups : int64 array of shape (t,)
        Releases with the same presumed channel have one code and share their counts.
    """

    way: Way
    label: int
    events: tuple[BoolArray, ...]
    groups: IndexArray

    def rows(self, labels: IntArray, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
        """Return the rows to count: of the label and of the others, as many where halves count."""
        inside, outside = np.flatnonzero(labels == self.label), np.flatnonzero(labels != self.label)
        if self.way == "rates":
            return inside, outside
        half = min(len(inside), len(outside))
        return rng.permutation(inside)[:half], rng.permutation(outside)[:half]

    def tally(self, labels: IntArray, released: IntArray, rng: np.random.Generator) -> Tally:
        """Count the events; ``labels`` of shape (n,), ``released`` of shape (n, t)."""
        inside, outside = self.rows(labels, rng)
        hits = np.stack([e[a] for e, a in zip(self.events, released.T, strict=True)], axis=1)
        return Tally(
            hits[inside].sum(axis=0).astype(np.int64),
            hits[outside].sum(axis=0).astype(np.int64),
            (len(inside), len(outside)),
        )

    def bound(self, tally: Tally, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε of all releases at level 1 − alpha, in nats."""
        if min(tally.rows) == 0:
            return EpsilonBound(0.0, alpha, 0, self.way)
        epsilon = self._rates(tally, alpha) if self.way == "rates" else self._accuracy(tally, alpha)
        return EpsilonBound(max(epsilon, 0.0), alpha, sum(tally.rows), self.way)

    def _members(self) -> Iterator[IndexArray]:
        for group in np.unique(self.groups):
            yield np.flatnonzero(self.groups == group)

    def _rates(self, tally: Tally, alpha: float) -> float:
        t, parts, (n, rest) = len(self.groups), list(self._members()), tally.rows
        low = trials_lower(tally.inside, n, alpha / (2 * t))
        if (low <= 0).any():
            return 0.0
        level = alpha / (2 * len(parts))
        high = [float(trials_upper(tally.outside[p].sum(), rest * len(p), level)) for p in parts]
        others = math.fsum(len(p) * math.log(q) for p, q in zip(parts, high, strict=True))
        return float(np.log(low).sum()) - others

    def _accuracy(self, tally: Tally, alpha: float) -> float:
        right, total, parts = tally.inside + tally.rows[0] - tally.outside, 0.0, [*self._members()]
        for part in parts:
            trials = 2 * tally.rows[0] * len(part)
            low = float(trials_lower(int(right[part].sum()), trials, alpha / len(parts)))
            total += len(part) * max(math.log(low) - math.log1p(-low), 0.0) if low > 0 else 0.0
        return total

    def expected(self, channels: Sequence[FloatArray], sizes: IndexArray, alpha: float) -> float:
        """Return the bound at the expected counts, in nats."""
        return self.bound(self._counts(channels, sizes), alpha).epsilon

    def _counts(self, channels: Sequence[FloatArray], sizes: IndexArray) -> Tally:
        others = np.where(np.arange(len(sizes)) == self.label, 0, sizes)
        n, rest = int(sizes[self.label]), int(others.sum())
        if self.way == "accuracy":
            n = rest = min(n, rest)
        shares = others / max(others.sum(), 1)
        chances = [c[:, e].sum(axis=1) for c, e in zip(channels, self.events, strict=True)]
        a = np.clip([chance[self.label] for chance in chances], 0, 1)
        b = np.clip([shares @ chance for chance in chances], 0, 1)
        inside, outside = binom.ppf(0.5, n, a), binom.isf(0.5, rest, b)
        return Tally(inside.astype(np.int64), outside.astype(np.int64), (n, rest))


def added_plan(sizes: IndexArray, channels: Sequence[FloatArray]) -> AddedPlan | None:
    """Return the plan with the largest bound to expect; None where one label has all rows.

    Parameters
    ----------
    sizes : int64 array of shape (k,)
        People of each true label.
    channels : float64 arrays of shape (k, m)
        The presumed channel of each release.
    """
    if np.count_nonzero(sizes) < 2:
        return None
    groups = _alike(channels)
    best: tuple[float, AddedPlan] | None = None
    for label in np.argsort(-sizes, kind="stable")[:_MOST_LABELS]:
        if sizes[label] == 0:
            continue
        events = tuple(_event(channel, sizes, int(label)) for channel in channels)
        for way in _WAYS:
            plan = AddedPlan(way, int(label), events, groups)
            expected = plan.expected(channels, sizes, _DESIGN_ALPHA)
            if best is None or expected > best[0]:
                best = expected, plan
    assert best is not None
    return best[1]


def _event(channel: FloatArray, sizes: IndexArray, label: int) -> BoolArray:
    others = np.where(np.arange(len(sizes)) == label, 0, sizes)
    return np.asarray(channel[label] > others @ channel / others.sum() * (1 + _SAME))


def _alike(channels: Sequence[FloatArray]) -> IndexArray:
    groups: list[int] = []
    for place, one in enumerate(channels):
        same = (
            groups[j]
            for j, other in enumerate(channels[:place])
            if one.shape == other.shape and np.allclose(one, other, rtol=0, atol=_SAME)
        )
        groups.append(next(same, place))
    return np.array(groups, dtype=np.int64)
