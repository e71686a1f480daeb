"""Certified lower bounds of a label channel's ε from counts of true against released labels."""

# Every bound here holds with probability at least 1 − alpha, over the mechanism's randomness, for
# every ε-label-DP channel that is the same for all rows, whatever the true labels are; rows are
# released independently. A channel that depends on the features needs other methods: there a
# released label may reveal features alone.
#
# Bounds take arrays of counts, since power is the share of simulated counts whose bound exceeds a
# limit.

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.intervals.binomial import (
    log_odds_ratio_exceeds,
    log_odds_ratio_lower,
    trials_lower,
    trials_upper,
)
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

CountTable = npt.NDArray[np.integer[Any]]  # rows by true label and output, shape (k, m)
Method = Literal["accuracy", "two-sided"]


@dataclass(frozen=True)
class EpsilonBound:
    """A one-sided lower confidence bound of ε.

    ``epsilon``: the bound in nats, at least 0; valid with probability at least 1 − ``alpha``.
    ``alpha``: the error probability. ``n``: the rows that were counted. ``method``: ``"accuracy"``,
    ``"two-sided"`` or ``"odds-ratio"``, or how the rows were found.
    """

    epsilon: float
    alpha: float
    n: int
    method: str


def epsilon_of_accuracy(accuracy: FloatArray, sizes: npt.NDArray[Any]) -> FloatArray:
    """Return the smallest ε at which some ε-DP channel lets a guesser be right so often.

    Parameters
    ----------
    accuracy : float64 array of shape (...)
        Mean probabilities of a right guess, in [0, 1].
    sizes : array of shape (..., k)
        How many rows have each true label; at least one row in all.

    Returns
    -------
    float64 array of shape (...)
        Nats. With shares p₁ ≥ p₂ ≥ … and P_j = p₁ + … + p_j, no ε-DP channel exceeds
        max_j P_j e^ε/(e^ε + j − 1); this is its inverse, 0 where accuracy ≤ p₁.

    References
    ----------
    Ghazi, Golowich, Kumar, Manurangsi & Zhang (2021), Deep learning with label differential
    privacy: RR-Top-k maximises the probability of the true label for a known prior.
    """
    accuracy = np.asarray(accuracy, dtype=np.float64)
    shares = -np.sort(-np.asarray(sizes, dtype=np.float64), axis=-1)
    cumulative = np.cumsum(shares, axis=-1) / shares.sum(axis=-1, keepdims=True)
    cumulative[..., -1] = 1.0
    others = np.arange(shares.shape[-1], dtype=np.float64)
    room = cumulative - accuracy[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        per_j = np.where(room > 0, np.log(others * accuracy[..., None]) - np.log(room), np.inf)
    # At p₁ the bound jumps: rounding must not lift an accuracy above it.
    constant = accuracy <= cumulative[..., 0] + 1e-12
    return np.asarray(np.where(constant, 0.0, np.maximum(np.min(per_j, axis=-1), 0.0)))


def accuracy_epsilon(correct: npt.ArrayLike, sizes: npt.NDArray[Any], alpha: float) -> FloatArray:
    """Bound ε by how often a fixed guess of the label is right.

    The guess is any function of the released label that was fixed beforehand. Given the true
    labels the number of right guesses is a sum of independent Bernoulli variables whose mean is at
    most the optimum of :func:`epsilon_of_accuracy`; its upper tail is at most a binomial's
    (:func:`trials_lower`). For equal class sizes it is the one-run bound log((k − 1)ℓ/(1 − ℓ)), for
    unequal ones it is what remains true of it: nothing follows from an accuracy that a constant
    guess reaches.

    Parameters
    ----------
    correct : integer array of shape (...)
        Right guesses.
    sizes : integer array of shape (k,)
        Rows of each true label among the rows counted.
    alpha : float
        One-sided error probability.

    Returns
    -------
    float64 array of shape (...)
        Nats, 0 without rows.
    """
    n = int(np.sum(sizes))
    if n == 0:
        return np.zeros(np.shape(correct))
    values, place = np.unique(np.asarray(correct), return_inverse=True)
    bounds = epsilon_of_accuracy(trials_lower(values, n, alpha), np.asarray(sizes))
    return np.asarray(bounds[place].reshape(np.shape(correct)))


def two_sided_epsilon(hits: npt.NDArray[Any], sizes: npt.NDArray[Any], alpha: float) -> FloatArray:
    """Bound ε by how often an event happens in two groups: true against false positives.

    The larger of log(TPR_lo/FPR_hi) and log(TNR_lo/FNR_hi): both follow from the same two tails of
    alpha/2 each.

    Parameters
    ----------
    hits, sizes : integer arrays of shape (..., 2)
        Rows with the event and all rows, of the group that should avoid it and of the other one.
    alpha : float
        One-sided error probability.

    Returns
    -------
    float64 array of shape (...)
        Nats.

    References
    ----------
    Jagielski, Ullman & Oprea (2020); Nasr et al. (2021), with Clopper–Pearson bounds.
    """
    low = trials_lower(hits[..., 1], sizes[..., 1], alpha / 2)
    high = trials_upper(hits[..., 0], sizes[..., 0], alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(low) - np.log(high), np.log1p(-high) - np.log1p(-low)
    return np.asarray(np.fmax(np.fmax(*ratios), 0.0))


def event_epsilon(tables: npt.NDArray[Any], share: float, alpha: float) -> FloatArray:
    """Bound ε by the odds ratio of an event in two labels, and by how rare it is in one of them.

    With P(event | 0) ≤ u and odds ratio θ ≥ t the ratio of the two probabilities is at least
    1/((1 − u)/t + u), which is at most e^ε. And θ ≤ e^{2ε}, as a product of two such ratios. For a
    rare event that is as good as one error probability for both counts; the two rates bounded one
    by one need two. The odds ratio is tight for symmetric channels, whatever the labels'
    frequencies.

    Parameters
    ----------
    tables : integer array of shape (..., 2, 2)
        Rows of label 0 and of label 1, without and with the event.
    share : float
        Of alpha, for u.
    alpha : float
        One-sided error probability.

    Returns
    -------
    float64 array of shape (...)
        Nats.

    References
    ----------
    Cornfield (1956), A statistical problem arising from retrospective studies.
    """
    log_theta = log_odds_ratio_lower(tables, (1 - share) * alpha)
    epsilon = np.maximum(log_theta / 2, 0.0)
    if share > 0:
        often = trials_upper(tables[..., 0, 1], tables[..., 0, :].sum(axis=-1), share * alpha)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = -np.logaddexp(np.log1p(-often) - log_theta, np.log(often))
        epsilon = np.maximum(epsilon, np.where(log_theta > 0, ratio, 0.0))
    return np.asarray(epsilon)


def event_exceeds(tables: npt.NDArray[Any], share: float, alpha: float, limit: float) -> BoolArray:
    """Return whether :func:`event_epsilon` is above a limit ≥ 0, bool (...), for simulations."""
    needed: Any = 2 * limit
    if share > 0:
        often = trials_upper(tables[..., 0, 1], tables[..., 0, :].sum(axis=-1), share * alpha)
        with np.errstate(divide="ignore", invalid="ignore"):
            rare = np.log1p(-often) - np.log(math.exp(-limit) - often)
        needed = np.fmin(needed, rare)  # NaN where even an infinite odds ratio would not do.
    return log_odds_ratio_exceeds(tables, (1 - share) * alpha, needed)


def class_counts(counts: CountTable) -> IndexArray:
    """Return how many rows have each true label, int64 of shape (k,)."""
    return np.asarray(np.asarray(counts).sum(axis=1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class GroupTest:
    """How often the outputs of groups of rows are the ones that the groups represent."""

    table: IndexArray
    """Int64 array of shape (g, m): rows of each group by output."""
    means: IntArray
    """Int32 array of shape (m,): the group that each output stands for."""
    share: float
    """The share of the error probability."""
    source: str
    """How the groups were found."""
    method: Method = "accuracy"
    """How ε is bounded from them; the second is for two groups."""
    chance: float | None = None
    """Of model-based mechanisms: the mean probability with which rows of the second group are
    claimed to be drawn the output of the first; None where it is not known."""
    sampled: int | None = None
    """How many of the other rows the groups were chosen on; None where it was all of them."""

    @cached_property
    def right(self) -> IndexArray:
        """Rows of each group whose output stands for it, int64 of shape (g,)."""
        return self._own(self.table)

    @cached_property
    def sizes(self) -> IndexArray:
        """Rows of each group, int64 of shape (g,)."""
        return np.asarray(self.table.sum(axis=1))

    def _own(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(
            np.where(self.means == np.arange(len(rows))[:, None], rows, 0).sum(axis=1)
        )

    def bound(self, alpha: float) -> EpsilonBound:
        """Bound ε at this test's share of alpha."""
        level, n = alpha * self.share, int(self.sizes.sum())
        return EpsilonBound(
            float(self._epsilon(self.right, self.sizes, level)), level, n, self.source
        )

    def simulated(
        self,
        outputs: FloatArray,
        alpha: float,
        draws: int,
        rng: np.random.Generator,
        factor: float = 1.0,
    ) -> FloatArray:
        """Return the bounds of simulated releases, float64 of shape (draws,).

        ``outputs``: the probabilities of each group's outputs, float64 of shape (g, m); ``factor``:
        how many times as many rows each group has.
        """
        sizes = np.floor(self.sizes * factor).astype(np.int64)
        chances = np.clip(self._own(outputs), 0.0, 1.0)
        right = rng.binomial(sizes, chances, (draws, len(sizes)))
        return self._epsilon(right, sizes, alpha * self.share)

    def _epsilon(self, right: IndexArray, sizes: IndexArray, level: float) -> FloatArray:
        if self.method == "accuracy":
            return accuracy_epsilon(right.sum(axis=-1), sizes, level)
        hits = np.stack([sizes[0] - right[..., 0], right[..., 1]], axis=-1)
        return two_sided_epsilon(hits, sizes, level)


class Evidence(Protocol):
    """Counts of one test, all randomness already drawn: a bound at any level."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the certified lower bound of ε at level 1 − alpha."""
        ...


_Test = TypeVar("_Test", bound=Evidence, covariant=True)


@dataclass(frozen=True, eq=False)
class Strongest(Generic[_Test]):
    """Several tests, each at its share of the error probability; the shares sum to at most 1."""

    tests: Sequence[_Test]

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the largest bound of all tests, valid at level 1 − alpha."""
        bounds = [test.bound(alpha) for test in self.tests]
        best = max(bounds, key=lambda bound: bound.epsilon, default=EpsilonBound(0, 0, 0, "none"))
        return replace(best, alpha=alpha)
