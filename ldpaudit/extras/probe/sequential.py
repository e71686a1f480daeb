"""A test of a claimed ε that may look at the guesses at any time, and stop.

Whatever was seen before, the right ones of the next r guesses are at most Binomial(r, q) with
q = e^ε/(1 + e^ε), for each ε-DP procedure that runs again on fresh coins. So for every p > q

    (p/q)^{right} ((1 − p)/(1 − q))^{wrong}

has a mean of at most 1, which grows with the right ones; the product over all guesses so far is a
supermartingale, and so is a mixture over p. It ever exceeds 1/α with probability α at most (Ville
1939), however often one looks and whenever one stops.

References
----------
Ville (1939); Ramdas, Grünwald, Vovk & Shafer (2023), Game-theoretic statistics and safe anytime-
valid inference; González et al. (2025), Sequentially auditing differential privacy.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import betaincinv, log_expit, logsumexp

from ldpaudit.doors import FloatArray

# Nats above the claim for which p is the chance of a right guess, and what is bet on each.
_EXCESSES: Final = np.concatenate([[0.01, 0.03], np.geomspace(0.1, 4.0, 9)])
_LOG_STAKES: Final = np.log(np.concatenate([[0.05, 0.05], np.full(9, 0.1)]))
_LARGEST: Final = 40.0  # nats: far more than any number of guesses supports
_STEP: Final = 1e-4  # nats to which a bound is rounded, downwards


def log_wealth(right: FloatArray, wrong: FloatArray, epsilon: float) -> FloatArray:
    """Return the log of the mixture after so many right and wrong guesses, float64 (t,)."""
    shifted = epsilon + _EXCESSES
    gain = log_expit(shifted) - log_expit(epsilon)
    loss = log_expit(-shifted) - log_expit(-epsilon)
    return np.asarray(
        logsumexp(_LOG_STAKES + np.outer(right, gain) + np.outer(wrong, loss), axis=1)
    )


def refutes(looks: Sequence[tuple[int, int]], epsilon: float, alpha: float) -> bool:
    """Return whether any of the looks at (right, wrong) guesses so far refutes ε-DP."""
    if not looks:
        return False
    right, wrong = np.array(looks, dtype=np.float64).T
    return bool(log_wealth(right, wrong, epsilon).max() >= -math.log(alpha))


def anytime_epsilon(looks: Sequence[tuple[int, int]], alpha: float) -> float:
    """Return the lower bound of ε after looks at the guesses so far, at level 1 − alpha.

    Parameters
    ----------
    looks : sequence of (int, int)
        All right and all wrong guesses up to each look, in order. How many are made next, and when
        to stop, may depend on all before.
    alpha : float
        One-sided error probability of this bound at all looks together.

    Returns
    -------
    float
        Nats, at least 0.
    """
    low, high = 0.0, _LARGEST
    if not refutes(looks, low, alpha):
        return 0.0
    while high - low > _STEP:
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(looks, middle, alpha) else (low, middle)
    return low


def detectable_at_any_time(guesses: int, claim: float, alpha: float) -> float:
    """Return an ε that would have refuted a claim with a probability of 90 %, in nats.

    By the last look alone at so many guesses: earlier ones only find more. ∞ where not even guesses
    that are all right refute the claim.
    """

    def enough(right: int) -> bool:
        return refutes([(right, guesses - right)], claim, alpha)

    least = bisect_left(range(guesses + 1), True, key=enough)
    if least > guesses:
        return math.inf
    needed = float(betaincinv(least, guesses - least + 1, 0.9))
    return max(math.log(needed) - math.log1p(-needed), claim)
