"""Certified bound of ε from guesses of the coins that a procedure ran on once.

Each of m candidates has a fair coin; a procedure that is (ε, δ)-DP with respect to each coin runs
on all of them, and any function of its output guesses r of the coins. Given the output and the
coins before it, a coin is guessed correctly with probability at most q = 1/(1 + e^−ε), so without δ
the number v of correct guesses is stochastically smaller than Binomial(r, q). Which coins are
guessed may depend on the output, but not on the coins.

Reference: Steinke, Nasr & Jagielski (2023), "Privacy auditing with one (1) training run",
Theorem 5.2.
"""

import math
from bisect import bisect_left

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from ldpaudit.estimators.epsilon.guesses import GuessCounts, detectable_epsilon
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower

_STEPS = 400
_LARGEST = 40.0
"""Nats: far more than any number of guesses supports."""


def one_run_p_value(counts: GuessCounts, epsilon: float, delta: float = 0.0) -> float:
    """Return the p-value of the hypothesis that the procedure is (ε, δ)-DP.

    P[Bin(r, q) ≥ v] + 2 m δ max over 1 ≤ i ≤ v of P[v > Bin(r, q) ≥ v − i]/i.

    Parameters
    ----------
    counts : GuessCounts
        ``candidates`` are all coins, those that were not guessed among them.
    epsilon : float
        Nats, at least 0.
    delta : float
        In [0, 1).
    """
    right, guesses = counts.right, counts.guesses
    q = 1 / (1 + math.exp(-epsilon))
    p_value = float(binom.sf(right - 1, guesses, q))
    if delta > 0 and right:
        steps = np.arange(1, right + 1)
        below = binom.cdf(right - 1, guesses, q) - binom.cdf(right - 1 - steps, guesses, q)
        p_value += 2 * counts.candidates * delta * float(np.max(below / steps))
    return min(p_value, 1.0)


def one_run_epsilon(counts: GuessCounts, alpha: float, delta: float = 0.0) -> float:
    """Return the lower confidence bound of ε, in nats, at level 1 − alpha; at least 0.

    With δ = 0 it is the log-odds of the Clopper–Pearson lower bound of v/r; else the smallest ε
    whose p-value is above alpha.
    """
    if counts.guesses == 0:
        return 0.0
    if delta == 0:
        share = float(clopper_pearson_lower(counts.right, counts.guesses, alpha))
        return max(math.log(share) - math.log1p(-share), 0.0) if share > 0 else 0.0

    def excess(epsilon: float) -> float:
        return one_run_p_value(counts, epsilon, delta) - alpha

    grid = np.linspace(0.0, _LARGEST, _STEPS + 1)
    first = next((place for place, point in enumerate(grid) if excess(float(point)) > 0), None)
    if first is None or first == 0:
        return 0.0 if first == 0 else _LARGEST
    return float(brentq(excess, grid[first - 1], grid[first]))


def detectable_in_one_run(
    counts: GuessCounts, claim: float, alpha: float, delta: float = 0.0
) -> float:
    """Return the smallest ε whose bound would exceed a claim with a probability of 90 %.

    It holds for a procedure whose output shows each guessed coin as well as ε lets it; ∞ where no
    ε would be found, and with δ > 0 where the claim would not be refuted by correct guesses alone.
    """
    if one_run_p_value(GuessCounts(counts.candidates, counts.guesses, 0), claim, delta) > alpha:
        return math.inf
    if delta == 0:
        return detectable_epsilon(counts, claim, alpha)

    def refutes(right: int) -> bool:
        seen = GuessCounts(counts.candidates, right, counts.guesses - right)
        return one_run_p_value(seen, claim, delta) <= alpha

    least = bisect_left(range(counts.guesses + 1), True, key=refutes)
    return max(
        float(
            brentq(
                lambda e: binom.sf(least - 1, counts.guesses, 1 / (1 + math.exp(-e))) - 0.9,
                -_LARGEST,
                _LARGEST,
            )
        ),
        claim,
    )
