"""Rényi divergences of order α > 1, bounded from below from samples.

For any fixed bounded φ,

    D_α(P‖Q) ≥ α/(α − 1) log E_P[e^{(α−1)φ}] − log E_Q[e^{αφ}]              (Donsker–Varadhan),

with equality at φ = log dP/dQ. A bound needs one mean from below and one from above. With t = e^φ,
r^α ≥ α r t^{α−1} − (α − 1) t^α gives the same in one mean,

    exp((α − 1) D_α(P‖Q)) ≥ α E_P[t^{α−1}] − (α − 1) E_Q[t^α]                (tangent),

so that one confidence bound on the mean of a bounded variable of independent groups of rows
suffices. At the best scale of t both right sides agree; the tangent spends its whole error
probability at once and pays for the scale, which was fixed on other rows. Which form, which order
α' ≤ α (D_α grows with α) and how φ is cut are all chosen on tuning rows, so nothing is corrected
for.

References
----------
Birrell et al. (2021), Variational representations and neural network estimation of Rényi
divergences, Theorem 3.1; Nguyen, Wainwright & Jordan (2010), Lemma 1; van Erven & Harremoës (2014),
Rényi divergence and Kullback–Leibler divergence, Theorems 3, 12 and 13.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.renyi.critics import ClippedCritic, Scores, choose_critics
from ldpaudit.release import FloatArray

ORDERS = (1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""The orders α that audits look at."""
TUNING_SHARE = 0.15
FEWEST_ROWS = 50
"""Held-out rows that each side must have."""
# The part of the error probability that the mean under Q gets where there are two bounds.
_UPPER_SHARE = 0.6
_LARGEST_WASTE = 0.04
# Above this order the bound of a smaller one is taken: one far row would decide its own.
_LARGEST_OWN = 10.0


@dataclass(frozen=True)
class RenyiBound:
    """A lower bound on D_α for one order, on rows that played no part in its choice.

    Attributes
    ----------
    order : float
        α.
    critic : ClippedCritic
        With its own order α' ≤ α and its form.
    scores : Scores
        The rows that it is bounded on.
    """

    order: float
    critic: ClippedCritic
    scores: Scores

    def at(self, alpha: float) -> float:
        """Return the bound in nats at one-sided error probability ``alpha``; never below 0."""
        if self.critic.foreseen <= 0:
            return 0.0
        bound = self._tangent if self.critic.form == "tangent" else self._donsker_varadhan
        return max(0.0, bound(alpha))

    def _donsker_varadhan(self, error: float) -> float:
        critic, order = self.critic, self.critic.order
        first, second = critic.powers(self.scores)
        lows, highs = critic.ranges()
        spent = _UPPER_SHARE * error
        low = mean_lower(first, error - spent, *lows)
        high = mean_upper(second, spent, *highs)
        if low <= 0:
            return 0.0
        return order / (order - 1) * math.log(low) - math.log(high)

    def _tangent(self, error: float) -> float:
        order = self.critic.order
        first, second = self.critic.powers(self.scores)
        (low_p, high_p), (low_q, high_q) = self.critic.ranges()
        a, b = _groups(len(first), len(second))
        m = min(len(first) // a, len(second) // b)
        values = order * first[: m * a].reshape(m, a).mean(axis=1)
        values -= (order - 1) * second[: m * b].reshape(m, b).mean(axis=1)
        low = order * low_p - (order - 1) * high_q
        high = order * high_p - (order - 1) * low_q
        mean = mean_lower(values, error, low, high)
        return math.log(mean) / (order - 1) if mean > 1 else 0.0


def split_scores(
    scores: Scores, *, rng: np.random.Generator, share: float = TUNING_SHARE
) -> tuple[Scores, Scores]:
    """Return tuning rows and the others, both shuffled.

    Raises
    ------
    InsufficientDataError
        If a side has fewer than 50 rows.
    """
    least = min(len(scores.p), len(scores.q))
    if least < FEWEST_ROWS:
        raise InsufficientDataError(
            f"A Rényi divergence needs at least {FEWEST_ROWS} held-out rows on each side."
        )
    p, q = scores.p[rng.permutation(len(scores.p))], scores.q[rng.permutation(len(scores.q))]
    first, second = max(20, int(share * len(p))), max(20, int(share * len(q)))
    return Scores(p[:first], q[:second]), Scores(p[first:], q[second:])


def bounds_on(
    tuning: Scores, test: Scores, orders: Sequence[float] = ORDERS
) -> tuple[RenyiBound, ...]:
    """Prepare a certified lower bound on D_α(P‖Q) for each order; each holds at its own level.

    Parameters
    ----------
    tuning, test : Scores
        Guesses of log dP/dQ for held-out rows of both sides, made without looking at them, as
        :func:`split_scores` shares them out. Rows of each side are independent draws; nothing is
        assumed of the guesses.
    orders : sequence of float
        Orders α > 1, ∞ allowed; above 10 a bound of order 10 or less is taken, since D_α grows.

    Raises
    ------
    InputError
        If an order is not above 1.
    """
    if not all(order > 1 for order in orders):
        raise InputError("Every order alpha must be above 1.")
    allowed = tuple(sorted({min(order, _LARGEST_OWN) for order in orders}))
    critics = choose_critics(tuning, len(test.p), len(test.q), allowed)
    # D_α is non-decreasing in α: a bound at a smaller order is one here too.
    able = [[critic for critic in critics if critic.order <= order] for order in orders]
    best = [max(some, key=lambda critic: critic.foreseen) for some in able]
    return tuple(map(RenyiBound, orders, best, repeat(test)))


def _groups(n_p: int, n_q: int) -> tuple[int, int]:
    fewest = min(n_p, n_q)
    for size in range(1, 41):
        groups = fewest // size
        if groups < 8:
            break
        used_p, used_q = n_p // groups * groups, n_q // groups * groups
        if max(1 - used_p / n_p, 1 - used_q / n_q) <= _LARGEST_WASTE:
            return n_p // groups, n_q // groups
    groups = max(fewest // 8, 1)
    return max(n_p // groups, 1), max(n_q // groups, 1)


# Effective rows of the weights e^{αφ} under Q below which an estimate is not supported.
_FEWEST_EFFECTIVE = 30.0
# The standard error, as a share of the divergence, that the part seen in Q may have.
_WANTED = 0.012
_CUTS = 60
# Beyond this order no number of rows that occurs supports an estimate worth having.
_LARGEST = 10.0
_FAR = 25.0


@dataclass(frozen=True)
class RenyiPoint:
    """Estimates of D_α in nats at one order.

    Attributes
    ----------
    order : float
        α.
    value : float
        The estimate to report.
    effective_rows : float
        Rows of Q that the exponential weights e^{αφ} leave: n (E w)²/E w².
    supported : bool
        Whether that is enough (30).
    """

    order: float
    value: float
    effective_rows: float
    supported: bool


def renyi_points(scores: Scores, orders: Sequence[float]) -> tuple[RenyiPoint, ...]:
    """Return estimates for each order from held-out rows.

    Parameters
    ----------
    scores : Scores
        Calibrated guesses of log dP/dQ for rows that they were not fitted on.
    orders : sequence of float
        Ascending orders α in (1, 10].

    Returns
    -------
    tuple of RenyiPoint
        An order is supported only where all smaller ones are.

    Raises
    ------
    InputError
        If an order lies outside (1, 10], or the orders do not ascend.
    InsufficientDataError
        If a side has no row.
    """
    if not all(1 < order <= _LARGEST for order in orders) or list(orders) != sorted(orders):
        raise InputError(f"Orders of an estimate must ascend within (1, {_LARGEST:g}].")
    if not (len(scores.p) and len(scores.q)):
        raise InsufficientDataError("An estimate of a divergence needs rows on both sides.")
    p, q = np.clip(scores.p, -_FAR, _FAR), np.clip(scores.q, -_FAR, _FAR)
    points: list[RenyiPoint] = []
    for order in orders:
        rows = _effective_rows(p, q, order)
        held = rows >= _FEWEST_EFFECTIVE and all(point.supported for point in points)
        value = max(0.0, _balanced(p, q, order))
        points.append(RenyiPoint(order, value, rows, held))
    return tuple(points)


def calibration_error(scores: Scores, bins: int = 20) -> float:
    """Return the expected calibration error of the discriminator, in [0, 1].

    The mean over quantile bins of |share of P − mean probability of P|, both sides weighted as if
    they had equally many rows.
    """
    both = np.concatenate([scores.p, scores.q])
    weight = np.concatenate(
        [np.full(len(scores.p), 0.5 / len(scores.p)), np.full(len(scores.q), 0.5 / len(scores.q))]
    )
    is_p = np.arange(len(both)) < len(scores.p)
    chance = 1 / (1 + np.exp(-np.clip(both, -_FAR, _FAR)))
    edges = np.unique(np.quantile(both, np.arange(1, bins) / bins))
    cell = np.searchsorted(edges, both, side="right")
    gap = np.bincount(cell, weight * (is_p - chance))
    return float(np.abs(gap).sum())


def _effective_rows(p: FloatArray, q: FloatArray, order: float) -> float:
    """Return the fewer of what Q's own rows show and what P's rows say of E_Q[e^{2αφ}].

    Few rows of Q lack the largest weights and so look like many effective ones.
    """
    top = max(float(p.max()), float(q.max()))
    weights = np.exp(order * (q - q.max()))
    direct = float(weights.sum() ** 2 / np.square(weights).sum())
    first = float(np.exp((order - 1) * (p - top)).mean())
    square = float(np.exp((2 * order - 1) * (p - top)).mean())
    implied = len(q) * first**2 / square * math.exp(-top)
    return min(direct, implied)


def _balanced(p: FloatArray, q: FloatArray, order: float) -> float:
    first, second = np.exp((order - 1) * p), np.exp(order * q)
    mean = float(first.mean())
    rough = max(math.log(mean) / (order - 1), 0.01)
    order_q, order_p = np.sort(q), np.sort(p)
    cumulative = np.cumsum(np.sort(second)) / len(q)
    squares = np.cumsum(np.square(np.sort(second))) / len(q)
    tail = np.cumsum(np.sort(first)[::-1])[::-1] / len(p)
    cuts = np.unique(np.quantile(q, 1 - np.geomspace(1, 1 / len(q), _CUTS)))
    below = np.searchsorted(order_q, cuts, side="right") - 1
    above = np.searchsorted(order_p, cuts, side="right")
    far = np.append(tail, 0.0)[above]
    total = cumulative[below] + far
    error = np.sqrt(np.maximum(squares[below] - cumulative[below] ** 2, 0) / len(q)) / total
    allowed = np.flatnonzero(error <= _WANTED * rough)
    chosen = int(allowed[-1]) if len(allowed) else 0
    return order / (order - 1) * math.log(mean) - math.log(float(total[chosen]))
