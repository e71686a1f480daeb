"""What an audit could have found: the probability that a bound exceeds a limit.

Computed from binomial distributions, without data and without normal approximations: how likely is
it that one of a design's two methods, at its share of the error probability, bounds ε above a
limit, if the release was made by a given channel?
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.stats import binom

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import largest_accuracy
from ldpaudit.estimators.epsilon.strongest import BoundDesign
from ldpaudit.estimators.intervals.binomial import trials_upper
from ldpaudit.estimators.intervals.odds_ratio import upper_tail_probability
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray, IndexArray

_REACH = 9.0
_NODES = 801
_SLOW_NODES = 41
_LARGEST_EPSILON = 60.0
_NOTHING = 1e-9
_WORTH_FINDING = 0.5


@dataclass(frozen=True, eq=False)
class SumOfBinomials:
    """The distribution of a sum of independent binomial counts.

    Parameters
    ----------
    trials : int64 array of shape (g,)
    probabilities : float64 array of shape (g,)
    """

    trials: IndexArray
    probabilities: FloatArray

    def survival(self, least: FloatArray) -> FloatArray:
        """Return P(sum ≥ least) for an array of thresholds."""
        trials, chances = self._merged()
        if len(trials) == 1:
            return np.asarray(binom.sf(np.asarray(least) - 1, trials[0], chances[0]))
        start, mass = self._mass(trials, chances)
        tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        index = np.clip(np.asarray(least) - start, 0, len(mass)).astype(np.int64)
        return np.asarray(np.minimum(tail[index], 1.0))

    def window(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """Return at most ``nodes`` values that cover the distribution, and their weights."""
        mean = float(self.trials @ self.probabilities)
        spread = math.sqrt(float(self.trials @ (self.probabilities * (1 - self.probabilities))))
        low = max(math.floor(mean - _REACH * spread - 20), 0)
        high = min(math.ceil(mean + _REACH * spread + 20), int(self.trials.sum()))
        values = np.unique(np.round(np.linspace(low, high, nodes)))
        edges = np.ceil((values[1:] + values[:-1]) / 2)
        survival = np.concatenate([[1.0], self.survival(edges), [0.0]])
        return values, survival[:-1] - survival[1:]

    def _merged(self) -> tuple[IndexArray, FloatArray]:
        used = self.trials > 0
        chances, where = np.unique(np.round(self.probabilities[used], 14), return_inverse=True)
        trials = np.bincount(where, weights=self.trials[used]).astype(np.int64)
        return (trials, chances) if len(trials) else (np.zeros(1, np.int64), np.zeros(1))

    def _mass(self, trials: IndexArray, chances: FloatArray) -> tuple[int, FloatArray]:
        start, mass = 0, np.ones(1)
        for n, p in zip(trials, chances, strict=True):
            reach = _REACH * math.sqrt(n * p * (1 - p)) + 20
            low, high = max(math.floor(n * p - reach), 0), min(math.ceil(n * p + reach), int(n))
            mass = np.maximum(fftconvolve(mass, binom.pmf(np.arange(low, high + 1), n, p)), 0.0)
            start += low
        return start, mass


def _binomial(n: int, probability: float) -> SumOfBinomials:
    return SumOfBinomials(np.array([n]), np.array([probability]))


def detection_power(
    design: BoundDesign, sizes: IndexArray, channel: FloatArray, limit: float, alpha: float
) -> float:
    """Return the probability that the likelier of a design's two methods bounds ε above a limit.

    Parameters
    ----------
    design : BoundDesign
    sizes : int64 array of shape (k,)
        Rows of each true label.
    channel : float64 array of shape (k, m)
        The channel that made the release.
    limit : float
        ε in nats, at least 0.
    alpha : float
        The whole error probability; each method has its share.

    Returns
    -------
    float
        A lower bound of the probability that the strongest bound exceeds the limit, up to a
        quadrature error below 1e-3.
    """
    right = SumOfBinomials(design.plan.keep, design.plan.success(channel))
    by_guesses = accuracy_power(right, design.plan.sizes, limit, alpha * design.weights["accuracy"])
    # The event is rarer where the channel is sharper: then the guesses find what it misses.
    return max(by_guesses, _by_event(design, sizes, channel, limit, alpha))


def _by_event(
    design: BoundDesign, sizes: IndexArray, channel: FloatArray, limit: float, alpha: float
) -> float:
    pair, level = design.pair, alpha * design.weights["two-sided"]
    if pair.single:
        return event_power(pair.table(sizes[:, None] * channel), pair.share, limit, level)
    success, groups = channel[:, pair.guess == 1].sum(axis=1), [pair.groups == g for g in (0, 1)]
    negative, positive = (SumOfBinomials(sizes[group], success[group]) for group in groups)
    return two_sided_power(negative, positive, limit, level)


def least_count(n: FloatArray | int, probability: FloatArray | float, alpha: float) -> FloatArray:
    """Return the smallest count whose Clopper–Pearson lower bound exceeds a probability."""
    # At the count itself the tail must fall below alpha, not just reach it.
    return np.asarray(binom.isf(alpha, n, np.minimum(probability, 1.0)) + 1, dtype=np.float64)


def accuracy_power(right: SumOfBinomials, sizes: IndexArray, limit: float, alpha: float) -> float:
    """Return the probability that right guesses bound ε above a limit, in nats.

    ``sizes``: rows of each label, int64 of shape (k,), as in
    :func:`ldpaudit.estimators.epsilon.bounds.accuracy_bound`.
    """
    least = least_count(int(sizes.sum()), largest_accuracy(limit, sizes), alpha)
    return float(right.survival(least))


def two_sided_power(
    negative: SumOfBinomials, positive: SumOfBinomials, limit: float, alpha: float
) -> float:
    """Return the probability that an event's counts in two groups bound ε above a limit, in nats.

    See :func:`ldpaudit.estimators.epsilon.bounds.two_sided_bound`; the positive group should have
    the event.
    """
    hits, weights = negative.window(_NODES)
    high = trials_upper(hits, int(negative.trials.sum()), alpha / 2)
    needed = np.minimum(math.exp(limit) * high, 1 - math.exp(-limit) * (1 - high))
    n = int(positive.trials.sum())
    least = np.where(needed < 1, least_count(n, needed, alpha / 2), n + 1)
    return float(weights @ np.where(least <= n, positive.survival(least), 0.0))


def event_power(table: FloatArray, share: float, limit: float, alpha: float) -> float:
    """Return the probability that an event in two labels bounds ε above a limit, in nats.

    ``table``: the rows expected of label 0 and label 1, without and with the event; ``share`` as in
    :func:`ldpaudit.estimators.epsilon.two_sided.event_bound`.
    """
    n0, n1 = (round(float(rows)) for rows in table.sum(axis=1))
    chances = table[:, 1] / np.maximum(table.sum(axis=1), 1e-300)
    values, weights = _binomial(n0, chances[0]).window(_NODES)
    # The critical count grows with u, almost linearly from node to node. Nodes are multiples of a
    # power of two, so that neighbouring channels share most of them.
    step = 2 ** max(round(math.log2((values[-1] - values[0] + 1) / _SLOW_NODES)), 0)
    nodes = np.minimum(step * np.arange(values[0] // step, values[-1] // step + 2), n0)
    ratios = np.full(len(nodes), 2 * limit)
    if share > 0:
        often, least = trials_upper(nodes, n0, share * alpha), math.exp(-limit)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_rate = np.where(often < least, np.log1p(-often) - np.log(least - often), np.inf)
        ratios = np.minimum(ratios, by_rate)
    level = (1 - share) * alpha
    critical = [
        _least_true(n0, n1, int(u), theta, level)
        for u, theta in zip(nodes, ratios.tolist(), strict=True)
    ]
    needed = np.ceil(np.interp(values, nodes, critical))
    return float(weights @ binom.sf(needed - 1, n1, chances[1]))


@lru_cache(maxsize=4096)
def _least_true(n0: int, n1: int, false: int, log_theta: float, alpha: float) -> int:
    """Return the smallest count of true positives that refutes a log odds ratio, n₁ + 1 if none."""
    if math.isinf(log_theta):
        return n1 + 1

    def refutes(true: int) -> bool:
        if true > n1:
            return True
        table = np.array([[n0 - false, false], [n1 - true, true]])
        return true > 0 and false < n0 and upper_tail_probability(table, log_theta) < alpha

    odds = math.exp(log_theta) * false / max(n0 - false, 1)
    # Where the observed odds ratio is the refuted one: the critical count lies a little above.
    low = min(max(int(n1 * odds / (1 + odds)) - 1, -1), n1)
    while low >= 0 and refutes(low):
        low = max(low - 16, -1)
    step = 1 + int(math.sqrt(n1))
    while not refutes(low + step):
        low += step
    return min(low + 1 + bisect_left(range(low + 1, low + step), True, key=refutes), n1 + 1)


def sharpened(channel: Channel, epsilon: float) -> Channel:
    """Return the channel whose entries are powers of another's, with a given ε.

    Rows proportional to T[y, z]^s, s chosen such that the channel has ``epsilon``, in nats: for
    randomized response this is randomized response at that ε. It tells apart what the claimed
    channel tells apart, more (s > 1) or less clearly. A channel that tells nothing apart (ε = 0)
    becomes randomized response.

    Raises
    ------
    InsufficientDataError
        If it tells nothing apart and its outputs are not its classes.
    """
    if math.isclose(epsilon, channel.epsilon, rel_tol=1e-12):
        return channel
    if channel.epsilon < _NOTHING:
        if channel.outputs != channel.classes:
            raise InsufficientDataError("the claimed channel tells no two labels apart")
        return RandomizedResponse.from_epsilon(channel.classes, epsilon).channel
    logs = np.log(np.where(channel.matrix > 0, channel.matrix, 1.0))

    def powered(s: float) -> Channel:
        weights = np.where(channel.matrix > 0, np.exp(s * (logs - logs.min())), 0.0)
        scaled = weights / weights.sum(axis=1, keepdims=True)
        return Channel(scaled, channel.classes, channel.outputs)

    top = 1.0
    while powered(top).epsilon < epsilon:
        top *= 2
    return powered(float(brentq(lambda s: powered(s).epsilon - epsilon, 0.0, top, xtol=1e-12)))


def worth_looking_for(channel: Channel) -> Channel:
    """Return the channel that bounds are designed for: a claimed one, unless it has ε = 0.

    Such a channel has no guess that is better than another; what would be worth finding is some
    randomized response.
    """
    if channel.epsilon >= _NOTHING or channel.outputs != channel.classes:
        return channel
    return sharpened(channel, _WORTH_FINDING)


def smallest_detectable(power: Callable[[float], float], limit: float, wanted: float) -> float:
    """Return the smallest ε above a limit that is found with a wanted probability, in nats.

    Parameters
    ----------
    power : callable
        From an ε to the probability of finding that it exceeds the limit; growing.
    limit : float
        In nats.
    wanted : float
        For instance 0.9.

    Returns
    -------
    float
        To 1e-4 nats, rounded up; ∞ where no ε up to 60 nats above is found so often.
    """
    step = 0.05
    low, high = limit, limit + step
    while power(high) < wanted:
        low, step = high, 2 * step
        high = high + step
        if high > limit + _LARGEST_EPSILON:
            return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        if power(middle) < wanted:
            low = middle
        else:
            high = middle
    return high
