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

ORDERS = (1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""The orders α that audits look at."""
TUNING_SHARE = 0.15
FEWEST_ROWS = 50
"""Held-out rows that each side must have."""
_UPPER_SHARE = 0.6
"""The part of the error probability that the mean under Q gets where there are two bounds."""
_LARGEST_WASTE = 0.04
_LARGEST_OWN = 10.0
"""Above this order the bound of a smaller one is taken: one far row would decide its own."""


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
    """Return how many rows of P and Q make a group: few, and few rows left over."""
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
