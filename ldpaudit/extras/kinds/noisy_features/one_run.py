"""Certified bounds of ε of a procedure that ran once on all candidates together.

Its guesses are not independent, as those of a randomizer are: Theorem 5.2 of Steinke, Nasr &
Jagielski (2023) holds.
"""

import math
from bisect import bisect_left
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv
from scipy.stats import binom

from ldpaudit.estimators.epsilon.guesses import GuessCounts

_LARGEST = 40.0  # nats: far more than any number of guesses supports


def one_run_p_value(counts: GuessCounts, epsilon: float, delta: float = 0.0) -> float:
    """Return the p-value of "the procedure that ran once on all candidates is (ε, δ)-DP".

    P[Bin(r, q) ≥ v] + 2Nδ·max_i P[v > Bin(r, q) ≥ v − i]/i, q = e^ε/(1 + e^ε), of v right guesses
    among r.
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
    """Return the lower bound of ε of a procedure that ran once, in nats, at level 1 − alpha.

    The smallest ε that is not rejected: with δ the p-value need not grow with ε.
    """
    grid = np.linspace(0.0, _LARGEST, 401)
    refuted = (one_run_p_value(counts, float(point), delta) <= alpha for point in grid)
    first = next((place for place, one in enumerate(refuted) if not one), None)
    if not first:
        return 0.0 if first == 0 else _LARGEST
    ends = grid[first - 1], grid[first]
    return float(brentq(lambda e: one_run_p_value(counts, e, delta) - alpha, *ends))


def detectable_in_one_run(
    counts: GuessCounts, claim: float, alpha: float, delta: float = 0.0
) -> float:
    """Return the smallest ε whose bound would exceed a claim with a probability of 90 %.

    ∞ where not even guesses that are all right refute the claim.
    """
    n = counts.guesses

    def refutes(right: int) -> bool:
        return one_run_p_value(replace(counts, right=right, wrong=n - right), claim, delta) <= alpha

    least = bisect_left(range(n + 1), True, key=refutes)
    if least > n:
        return math.inf
    needed = float(betaincinv(least, n - least + 1, 0.9))
    return max(math.log(needed) - math.log1p(-needed), claim)
