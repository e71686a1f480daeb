"""Sums of independent coins with different odds: tails, and bounds of a shift of their odds.

If each of n guesses is right with a probability whose log-odds are those of a known prior p_i plus
at most ε, the number of right guesses is at most Poisson-binomial with
q_i = p_i e^ε/(1 + p_i(e^ε − 1)). That bounds ε from below, in nats.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit, logit, ndtri

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, IndexArray

# Log-odds are rounded to multiples of this, to the side that makes a bound weaker.
_STEP: Final = 0.01
_LARGEST: Final = 30.0
# More than what the inversion of the characteristic function may be off.
_NUMERICAL: Final = 1e-12
_PRECISION: Final = 1e-5
_BLOCK: Final = 1 << 21
_FARTHEST: Final = 64.0


@dataclass(frozen=True)
class ShiftedCoins:
    """Coins by the log-odds of their priors, all shifted by one number.

    Attributes
    ----------
    odds : float64 array of shape (l,)
        Distinct log-odds.
    counts : float64 array of shape (l,)
        How many coins have each; whole numbers.
    """

    odds: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, priors: FloatArray, up: bool) -> "ShiftedCoins":
        """Group priors by their log-odds, rounded up or down to a hundredth.

        Raises
        ------
        InputError
            If a prior lies outside of [0, 1].
        """
        p = np.asarray(priors, dtype=np.float64)
        if not ((p >= 0) & (p <= 1)).all():
            raise InputError("Prior probabilities must lie in [0, 1].")
        with np.errstate(divide="ignore"):
            steps = np.clip(logit(p), -_LARGEST, _LARGEST) / _STEP
        whole = np.ceil(steps) if up else np.floor(steps)
        places, sizes = np.unique(whole, return_counts=True)
        counts = sizes.astype(np.float64)
        odds = places * _STEP
        # A coin that is certain stays certain; one that cannot be stays so, too, if rounding up
        # is not what makes the bound safe.
        odds = np.where(odds >= _LARGEST, math.inf if up else _LARGEST, odds)
        return cls(np.where(odds <= -_LARGEST, -_LARGEST if up else -math.inf, odds), counts)

    def __len__(self) -> int:
        """Return the number of coins."""
        return int(self.counts.sum())

    def draw(self, draws: int, rng: np.random.Generator) -> IndexArray:
        """Draw how many coins come up, int64 of shape (draws,)."""
        chances, shape = expit(self.odds), (draws, len(self.odds))
        return np.asarray(rng.binomial(self.counts.astype(np.int64), chances, shape).sum(axis=1))

    def at_least(self, count: int, shift: float) -> float:
        """Return P(S ≥ count), never too small, with all log-odds shifted by ``shift``."""
        if count <= 0:
            return 1.0
        first, pmf = self._pmf(shift)
        return float(min(pmf[max(count - first, 0) :].sum() + _NUMERICAL, 1.0))

    def at_most(self, count: int, shift: float) -> float:
        """Return P(S ≤ count), never too small, with all log-odds shifted by ``shift``."""
        if count >= len(self):
            return 1.0
        first, pmf = self._pmf(shift)
        return float(min(pmf[: max(count + 1 - first, 0)].sum() + _NUMERICAL, 1.0))

    def normal_shift(self, count: int, alpha: float) -> float:
        """Return about the shift at which P(S ≥ count) is alpha, within ±30."""
        from scipy.optimize import brentq

        def short(shift: float) -> float:
            q = expit(self.odds + shift)
            deviation = math.sqrt(float(self.counts @ (q * (1 - q))) + 1)
            return float(self.counts @ q) - ndtri(alpha) * deviation - count

        if short(-_LARGEST) > 0 or short(_LARGEST) < 0:
            return 0.0
        return float(brentq(short, -_LARGEST, _LARGEST, xtol=1e-3))

    def _pmf(self, shift: float) -> tuple[int, FloatArray]:
        """Return P(S = s) for the s around the mean that matter, and the first such s.

        The characteristic function is inverted at as many points as cover ten standard deviations
        and more on either side: what lies farther away has a mass below 1e-15 (Bernstein).

        References
        ----------
        Hong (2013), On computing the distribution function for the Poisson binomial distribution.
        """
        q = expit(self.odds + shift)
        mean, variance = float(self.counts @ q), float(self.counts @ (q * (1 - q)))
        points = min(len(self) + 1, int(20 * math.sqrt(variance)) + 120)
        first = max(0, min(int(mean) - points // 2, len(self) + 1 - points))
        omega = 2 * np.pi * np.arange(points // 2 + 1) / points
        log_phi = np.zeros(len(omega), dtype=np.complex128)
        most = max(_BLOCK // len(omega), 1)
        for start in range(0, len(q), most):
            part = q[start : start + most, None]
            turned = np.log1p(part * (np.exp(1j * omega)[None, :] - 1))
            log_phi += self.counts[start : start + most] @ turned
        phi = np.exp(log_phi - 1j * omega * first)
        # The inverse of a characteristic function is a forward transform: hence the conjugate.
        return first, np.clip(np.fft.irfft(np.conj(phi), n=points), 0.0, None)


def shift_lower(priors: FloatArray, correct: int, alpha: float) -> float:
    """Return a lower bound of the shift of log-odds behind right guesses.

    Parameters
    ----------
    priors : float64 array of shape (n,)
        The prior probability that each guess is right, known.
    correct : int
        How many were right.
    alpha : float
        One-sided error probability.

    Returns
    -------
    float
        At most the largest shift of any guess's log-odds (for an ε-label-DP channel at most ε),
        with probability at least 1 − alpha; 0 where nothing follows, ∞ where a guess was right
        that could not be.
    """
    coins = ShiftedCoins.of(priors, up=True)
    # Rounding up must not hide that no shift explains what was seen.
    if correct > int(np.count_nonzero(np.asarray(priors) > 0)):
        return math.inf
    return max(_largest(coins, lambda shift: coins.at_least(correct, shift), alpha, correct), 0.0)


def shift_upper(priors: FloatArray, correct: int, alpha: float) -> float:
    """Return an upper bound at level 1 − alpha of a shift that all guesses' log-odds share.

    Parameters as in :func:`shift_lower`. May be negative; ∞ where all guesses were right.
    """
    coins = ShiftedCoins.of(priors, up=False)
    if correct >= int(coins.counts[np.isfinite(coins.odds)].sum()):
        return math.inf
    mirrored = ShiftedCoins(-coins.odds, coins.counts)
    wrong = len(coins) - correct
    return -_largest(mirrored, lambda shift: coins.at_most(correct, -shift), alpha, wrong)


def _largest(
    coins: ShiftedCoins, tail: Callable[[float], float], alpha: float, count: int
) -> float:
    """Return the largest shift at which a tail that grows with it is at most alpha.

    Normal quantiles of the tail are nearly linear in the shift: a few steps from where the normal
    approximation puts it are enough. −∞ if there is none.
    """
    from scipy.optimize import brentq

    def beyond(shift: float) -> float:
        return float(ndtri(min(max(tail(shift), 1e-300), 1 - 1e-16)) - ndtri(alpha))

    low = high = coins.normal_shift(count, alpha)
    step = 0.02
    while beyond(low) > 0:
        high, low, step = low, low - step, 2 * step
        if low < -_FARTHEST:
            return -math.inf
    step = 0.02
    while high <= low or beyond(high) <= 0:
        high, step = max(low, high) + step, 2 * step
        if high > _FARTHEST:
            return low
    root = brentq(beyond, low, high, xtol=_PRECISION, rtol=1e-9)
    return float(max(root - 2 * _PRECISION, low))
