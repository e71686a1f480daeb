"""Bounds from guesses in one run under a claimed trade-off curve: μ-Gaussian differential privacy.

Each of m candidates has one of k equally likely inputs, and of the output at most r inputs are
guessed. Exchanging one candidate's input is f-DP: P₁(A) ≤ f̄(P₂(A)) for every event A, with
f̄(x) = 1 − f(x), concave. Let p_i be the probability of i right guesses. Exchanging the input of a
candidate that was guessed rightly turns i right guesses into i − 1, so, averaged over candidates,

    Σ_{i>j} (i/m) p_i ≤ f̄( Σ_{i≥j} ((r − i)/m) p_i / (k − 1) )        for every j.

If v or more guesses are right with probability τ, these inequalities ask for the least total
probability where all of τ lies at v and each p_j, from v − 1 down, is as small as they allow; where
that total is above 1, no f-DP procedure has so many right guesses so often. More right guesses only
raise the total, and the probabilities need not sum to 1 over runs in which a rule chose r, so
several numbers of guesses may be tested at shares of one level.

References
----------
Mahloujifar, Melis & Chaudhuri (2025), Auditing f-differential privacy in one run, Theorem 9 and
Algorithm 1; Dong, Roth & Su (2022), Gaussian differential privacy, Corollary 2.13.
"""

import math
from bisect import bisect_left
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, norm

from ldpaudit.doors import clopper_pearson_lower
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.extras.kinds.mechanisms.gaussian import gaussian_epsilon, gaussian_sigma

SHARES: Final = (1.0, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01)
"""Of the candidates, those that may be guessed: where the output says most."""
_LARGEST: Final = 40.0  # μ: far more than any number of guesses supports
_STEP: Final = 1e-4  # to which a bound of μ is rounded, downwards
_DESIGNED: Final = 5_000  # candidates with which a share is chosen, at most
_QUANTILES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)  # of right guesses, to foresee a mean bound
_SQRT_HALF: Final = math.sqrt(0.5)
_quantile = NormalDist().inv_cdf


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ whose curve is (ε, δ)-DP: that of Gaussian noise, ε > 0 and δ > 0."""
    return 1 / gaussian_sigma(epsilon, delta, 1.0)


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the ε, in nats, of μ-Gaussian differential privacy at δ > 0."""
    return gaussian_epsilon(1.0, mu, delta) if mu > 0 else 0.0


def one_run_refutes(counts: GuessCounts, mu: float, alpha: float, labels: int = 2) -> bool:
    """Return whether so many right guesses refute μ-GDP of a procedure that ran once.

    Parameters
    ----------
    counts : GuessCounts
        Of candidates with one of ``labels`` equally likely inputs each. How many are guessed at
        most was fixed beforehand; a guess that was not made counts as wrong.
    mu : float
        Of the curve f̄⁻¹(y) = Φ(Φ⁻¹(y) − μ), above 0.
    alpha : float
        The probability with which it is refuted although it holds, at most.
    """
    right, guesses, m = counts.right, counts.guesses, counts.candidates
    # r and h: of right and of wrong guesses, Σ (i/m) p_i and Σ ((guesses − i)/m) p_i so far.
    r, h, whole = alpha * right / m, alpha * (guesses - right) / m, guesses / m
    for i in range(right - 1, -1, -1):
        if r >= 1.0:
            return True
        wrong = (labels - 1) * 0.5 * math.erfc((mu - _quantile(r)) * _SQRT_HALF)
        if wrong > h:
            r += i / (guesses - i) * (wrong - h)
            h = wrong
            if r + h > whole * (1 + 1e-12):
                return True
    return False


def one_run_mu(counts: GuessCounts, alpha: float, labels: int = 2) -> float:
    """Return the lower bound of μ of a procedure that ran once, at level 1 − alpha."""
    if counts.right == 0:
        return 0.0

    def holds(step: int) -> bool:
        return not one_run_refutes(counts, step * _STEP, alpha, labels)

    low, high = 0, 64
    while high * _STEP < _LARGEST and not holds(high):
        low, high = high, 2 * high
    place = bisect_left(range(low + 1, high + 1), True, key=holds)
    return (low + place) * _STEP


def independent_mu(counts: GuessCounts, alpha: float) -> float:
    """Return the lower bound of μ where each guess is of a run of its own, at level 1 − alpha.

    Of one run's two inputs a guess is right with probability Φ(μ/2) at most, and runs are
    independent: Clopper–Pearson.
    """
    if counts.right == 0:
        return 0.0
    return max(
        2 * float(norm.ppf(clopper_pearson_lower(counts.right, counts.candidates, alpha))), 0
    )


def fixed_share(mu: float, candidates: int, alpha: float) -> float:
    """Return the share of candidates to guess that promises the largest bound, before any guess.

    As if each candidate's input were shown by one number with Gaussian noise of curve μ.
    """
    return promised_share(mu, candidates, alpha)[0]


@lru_cache(maxsize=64)
def promised_share(mu: float, candidates: int, alpha: float) -> tuple[float, float]:
    """Return that share, and the mean bound of μ that it promises."""
    m = min(candidates, _DESIGNED)

    def promised(share: float) -> float:
        guesses = math.ceil(share * m)
        low, high = 0.0, mu + 10.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            if ndtr(mu / 2 - middle) + ndtr(-mu / 2 - middle) > share:
                low = middle
            else:
                high = middle
        right, wrong = float(ndtr(mu / 2 - low)), float(ndtr(-mu / 2 - low))
        found = np.asarray(binom.ppf(_QUANTILES, guesses, right / (right + wrong)))
        counts = found.astype(np.int64).tolist()
        return sum(one_run_mu(GuessCounts(m, v, guesses - v), alpha) for v in counts)

    share = max(SHARES, key=promised)
    return share, promised(share) / len(_QUANTILES)
