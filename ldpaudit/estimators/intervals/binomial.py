"""Bounds of proportions: the counts are the primary datum, an interval is a function of them."""

# Clopper–Pearson bounds; the exact conditional bound of odds ratios, for tables of any size; and
# tails of sums of coins with different odds. If each of n guesses is right with a probability whose
# log-odds are those of a known prior p_i plus at most ε, the number of right guesses is at most
# Poisson-binomial with q_i = p_i e^ε/(1 + p_i(e^ε − 1)). That bounds ε from below, in nats.

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, expit, logit, ndtri

from ldpaudit.errors import InputError
from ldpaudit.release import BoolArray, FloatArray, IndexArray

Counts = npt.ArrayLike  # whole numbers, of any type


def clopper_pearson_lower(count: Counts, n: Counts, alpha: float) -> FloatArray:
    """Return the exact lower confidence bound of a binomial proportion at level 1 − alpha.

    Parameters
    ----------
    count, n : int or integer arrays that broadcast
        Successes and trials, 0 ≤ count ≤ n.
    alpha : float
        One-sided error probability in (0, 1).

    Returns
    -------
    float64 array of the broadcast shape
        The alpha-quantile of Beta(count, n − count + 1); 0 where count = 0.

    References
    ----------
    Clopper & Pearson (1934), Biometrika 26(4).
    """
    c, t = np.asarray(count, dtype=np.float64), np.asarray(n, np.float64)
    inner = c > 0
    if inner.all():
        return np.asarray(betaincinv(c, t - c + 1, alpha))
    bound = betaincinv(np.where(inner, c, 1.0), np.where(inner, t - c + 1, 1.0), alpha)
    return np.where(inner, bound, 0.0)


def clopper_pearson_upper(count: Counts, n: Counts, alpha: float) -> FloatArray:
    """Return the exact upper confidence bound of a binomial proportion at level 1 − alpha.

    The (1 − alpha)-quantile of Beta(count + 1, n − count); 1 where count = n. Parameters as in
    :func:`clopper_pearson_lower`.
    """
    return 1.0 - clopper_pearson_lower(np.asarray(n) - np.asarray(count), n, alpha)


def clopper_pearson(count: Counts, n: Counts, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return the exact two-sided interval of a binomial proportion at level 1 − alpha.

    Parameters
    ----------
    count, n : int or integer arrays that broadcast
        Successes and trials, 0 ≤ count ≤ n.
    alpha : float
        The error probability in (0, 1), half of it on each side.

    Returns
    -------
    low, high : float64 arrays of the broadcast shape

    References
    ----------
    Clopper & Pearson (1934), Biometrika 26(4).
    """
    return clopper_pearson_lower(count, n, alpha / 2), clopper_pearson_upper(count, n, alpha / 2)


def score_lower(count: Counts, n: Counts, alpha: float) -> FloatArray:
    """Return Wilson's approximate lower bound of a proportion: for designs, never for a result.

    Parameters as in :func:`clopper_pearson_lower`.

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22(158).
    """
    c, t, z = np.asarray(count, np.float64), np.asarray(n, np.float64), -ndtri(alpha)
    spread = z * np.sqrt(c * (1 - c / t) + z * z / 4)
    return np.asarray(np.maximum(c + z * z / 2 - spread, 0.0) / (t + z * z))


def trials_lower(count: Counts, n: Counts, alpha: float) -> FloatArray:
    """Return a lower confidence bound of the mean chance of independent trials at level 1 − alpha.

    The trials may have chances of their own, as guesses have given what is released. A sum of such
    trials is less dispersed than a binomial one of the same mean (Hoeffding 1956, Theorem 5), so
    Clopper–Pearson's bound holds but for one success: a single trial may hold the whole mean, and
    P(a success) ≤ n·mean gives α/n there, less by a share of α/2. Above a level of 1/4 the bound ℓ
    holds where count ≥ nℓ + 1 (Theorem 4), and is 0 elsewhere.

    Parameters
    ----------
    count, n
        As for :func:`clopper_pearson_lower`.
    alpha : float
        One-sided error probability in (0, 1).

    References
    ----------
    Hoeffding (1956), On the distribution of the number of successes in independent trials,
    Annals of Mathematical Statistics 27(3).
    """
    successes, trials = np.asarray(count), np.asarray(n)
    bound = clopper_pearson_lower(count, n, alpha)
    # Up to this level Hoeffding's theorem covers every count of two or more.
    if alpha > 0.25:
        bound = np.where(successes >= trials * bound + 1, bound, 0.0)
    if not (successes == 1).any():
        return bound
    return np.asarray(np.where(successes == 1, alpha / np.maximum(trials, 1), bound))


def trials_upper(count: Counts, n: Counts, alpha: float) -> FloatArray:
    """Return an upper confidence bound of the mean chance of independent trials at level 1 − alpha.

    The mirror image of :func:`trials_lower`, with its parameters.
    """
    return 1.0 - trials_lower(np.asarray(n) - np.asarray(count), n, alpha)


# Standard deviations of a count that are summed: a log-concave law has less than 1e-18 beyond.
_REACH = 9.0
_SLACK = 60
_LARGE = 400  # with so many rows in every cell the normal approximation is off by less than 1e-3
_NEWTON_STEP, _NEWTON_PRECISION = 2.0, 1e-9


def log_odds_ratio_lower(tables: npt.NDArray[np.integer[Any]], alpha: float) -> FloatArray:
    """Return the exact lower confidence bound of log θ, θ = t₁₁t₀₀/(t₀₁t₁₀).

    Parameters
    ----------
    tables : integer array of shape (..., 2, 2)
        Independent rows counted by two labels; only the odds ratio is bounded, so neither the
        labels' nor the outputs' frequencies matter.
    alpha : float
        One-sided error probability.

    Returns
    -------
    float64 array of shape (...)
        The θ at which P(X ≥ t₁₁ | margins) = alpha under Fisher's noncentral hypergeometric
        distribution, as a logarithm; −∞ where t₁₁ is as small as its margins allow.

    References
    ----------
    Cornfield (1956), A statistical problem arising from retrospective studies.
    """
    cells, bounds, solved = _by_normal(tables, alpha, math.inf)
    if solved.any():
        bounds[solved] = _solved(cells[solved], bounds[solved], alpha)
    return np.asarray(bounds.reshape(np.shape(tables)[:-2]))


def log_odds_ratio_exceeds(
    tables: npt.NDArray[np.integer[Any]], alpha: float, limit: npt.ArrayLike
) -> BoolArray:
    """Return whether :func:`log_odds_ratio_lower` is above a limit, bool (...), for simulations.

    A look at the tail at the limit tells it, without the bound. Tables with at least 400 rows in
    every cell are bounded by the normal approximation.
    """
    cells, bounds, solved = _by_normal(tables, alpha, _LARGE)
    limits = np.broadcast_to(limit, np.shape(tables)[:-2]).reshape(-1)
    above = bounds > limits
    if solved.any():
        steps, logs, below = _terms(cells[solved], alpha)
        tail, rest, _ = _tails(steps, logs, below, limits[solved])
        above[solved] = np.log(tail) - np.log(rest) < math.log(alpha) - math.log1p(-alpha)
    return np.asarray(above.reshape(np.shape(tables)[:-2]))


def _by_normal(
    tables: npt.NDArray[np.integer[Any]], alpha: float, large: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return cells (t, 4), bounds of log θ by the normal law, and which (t,) must be solved."""
    if np.shape(tables)[-2:] != (2, 2):
        raise InputError(f"An odds ratio must have a 2 × 2 table, got {np.shape(tables)}.")
    cells = np.reshape(tables, (-1, 4)).astype(np.float64)
    half = cells + 0.5
    bounds = np.log(half[:, 0]) + np.log(half[:, 3]) - np.log(half[:, 1]) - np.log(half[:, 2])
    bounds += ndtri(alpha) * np.sqrt((1 / half).sum(axis=1))
    possible = np.minimum(cells[:, 0], cells[:, 3]) > 0
    bounds[~possible] = -math.inf
    return cells, bounds, possible & (cells.min(axis=1) < large)


def _terms(cells: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray, int]:
    """Return counts less x₀ (s,), log P(x₀ + count)/P(x₀) at θ = 1 (t, s), how many are below."""
    spread = float(np.max((1 / (cells + 0.5)).sum(axis=1) ** -0.5))
    below = int(_SLACK + (_REACH - ndtri(alpha)) * spread)
    steps = np.arange(-below, int(_SLACK + _REACH * spread) + 1, dtype=np.float64)
    n00, n01, n10, n11 = (column[:, None] for column in cells.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Logarithm of P(x₀ + j + 1)/P(x₀ + j), summed outward from x₀: no large factorials.
        j = steps[:-1]
        ratio = np.log((n01 - j) * (n10 - j)) - np.log((n11 + j + 1) * (n00 + j + 1))
        ratio = np.where((j < 0) & (j < -np.minimum(n00, n11)), np.inf, ratio)
        ratio = np.where((j >= 0) & (j >= np.minimum(n01, n10)), -np.inf, ratio)
        upper, lower = np.cumsum(ratio[:, below:], axis=1), ratio[:, :below]
        lower = -np.cumsum(lower[:, ::-1], axis=1)[:, ::-1]
    return steps, np.concatenate([lower, np.zeros((len(cells), 1)), upper], axis=1), below


def _tails(
    steps: FloatArray, logs: FloatArray, below: int, log_theta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mass from x₀ on, that below x₀, and all of it by count, but for a factor."""
    terms = logs + log_theta[:, None] * steps
    mass = np.exp(terms - terms.max(axis=1, keepdims=True))
    tail, rest = mass[:, below:].sum(axis=1), mass[:, :below].sum(axis=1)
    return np.maximum(tail, 1e-300), np.maximum(rest, 1e-300), mass


def _solved(cells: FloatArray, log_theta: FloatArray, alpha: float) -> FloatArray:
    """Return where the tail is alpha by Newton's method, from about there; cells (t, 4)."""
    # The tail's log-odds are nearly linear in log θ; their derivative is the difference of the mean
    # counts in the tail and outside it.
    steps, logs, below = _terms(cells, alpha)
    level = math.log(alpha) - math.log1p(-alpha)
    for _ in range(100):
        tail, rest, mass = _tails(steps, logs, below, log_theta)
        slope = mass[:, below:] @ steps[below:] / tail - mass[:, :below] @ steps[:below] / rest
        change = np.clip((level - np.log(tail) + np.log(rest)) / slope, -_NEWTON_STEP, _NEWTON_STEP)
        log_theta = log_theta + change
        if np.abs(change).max() < _NEWTON_PRECISION:
            break
    # Rounding may only make the bound smaller.
    return np.asarray(log_theta - 2 * _NEWTON_PRECISION)


# Log-odds are rounded to multiples of this, to the side that makes a bound weaker.
_STEP: Final = 0.01
_LARGEST: Final = 30.0
_PRECISION: Final = 1e-5


@dataclass(frozen=True)
class ShiftedCoins:
    """Coins by the log-odds of their priors, all shifted by one number."""

    odds: FloatArray
    """Float64 array of shape (l,): distinct log-odds."""
    counts: FloatArray
    """Float64 array of shape (l,): how many coins have each; whole numbers."""

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
        # More than what the inversion of the characteristic function may be off.
        return float(min(pmf[max(count - first, 0) :].sum() + 1e-12, 1.0))

    def at_most(self, count: int, shift: float) -> float:
        """Return P(S ≤ count), never too small, with all log-odds shifted by ``shift``."""
        return self.mirrored().at_least(len(self) - count, -shift)

    def mirrored(self) -> "ShiftedCoins":
        """Return the coins with their sides exchanged."""
        return ShiftedCoins(-self.odds, self.counts)

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
        most = max((1 << 21) // len(omega), 1)
        for start in range(0, len(q), most):
            part = q[start : start + most, None]
            turned = np.log1p(part * (np.exp(1j * omega)[None, :] - 1))
            log_phi += self.counts[start : start + most] @ turned
        phi = np.exp(log_phi - 1j * omega * first)
        # The inverse of a characteristic function is a forward transform: hence the conjugate.
        return first, np.clip(np.fft.irfft(np.conj(phi), n=points), 0.0, None)


def shift_lower(priors: FloatArray, correct: int, alpha: float) -> float:
    """Return a lower bound, in nats at level 1 − alpha, of the shift of log-odds behind guesses.

    Guesses that are right with a known prior probability are right more often given what a
    mechanism released; the shift of their log-odds is at most ε.

    Parameters
    ----------
    priors : float64 array of shape (n,)
        The prior probability that each guess is right, known.
    correct : int
        How many were right.
    alpha : float
        One-sided error probability in (0, 1).

    Returns
    -------
    float
        In nats: at most the largest shift of any guess's log-odds (for an ε-label-DP channel at
        most ε), with probability at least 1 − alpha; 0 where nothing follows, ∞ where a guess was
        right that could not be.
    """
    coins = ShiftedCoins.of(priors, up=True)
    # Rounding up must not hide that no shift explains what was seen.
    if correct > int(np.count_nonzero(np.asarray(priors) > 0)):
        return math.inf
    return max(_largest(coins, correct, alpha), 0.0)


def shift_upper(priors: FloatArray, correct: int, alpha: float) -> float:
    """Return an upper bound at level 1 − alpha of a shift that all guesses' log-odds share.

    Parameters as in :func:`shift_lower`. May be negative; ∞ where all guesses were right.
    """
    coins = ShiftedCoins.of(priors, up=False)
    if correct >= int(coins.counts[np.isfinite(coins.odds)].sum()):
        return math.inf
    return -_largest(coins.mirrored(), len(coins) - correct, alpha)


def _largest(coins: ShiftedCoins, count: int, alpha: float) -> float:
    """Return the largest shift at which P(S ≥ count) is at most alpha; −∞ if there is none."""
    # Normal quantiles of the tail are nearly linear in the shift: a few steps from where the normal
    # approximation puts it are enough.
    from scipy.optimize import brentq

    def short(shift: float) -> float:
        q = expit(coins.odds + shift)
        deviation = math.sqrt(float(coins.counts @ (q * (1 - q))) + 1)
        return float(coins.counts @ q) - ndtri(alpha) * deviation - count

    def beyond(shift: float) -> float:
        tail = min(max(coins.at_least(count, shift), 1e-300), 1 - 1e-16)
        return float(ndtri(tail) - ndtri(alpha))

    near = short(-_LARGEST) <= 0 <= short(_LARGEST)
    low = high = float(brentq(short, -_LARGEST, _LARGEST, xtol=1e-3)) if near else 0.0
    step = 0.02
    while beyond(low) > 0:
        high, low, step = low, low - step, 2 * step
        if low < -64.0:
            return -math.inf
    step = 0.02
    while high <= low or beyond(high) <= 0:
        high, step = max(low, high) + step, 2 * step
        if high > 64.0:
            return low
    root = brentq(beyond, low, high, xtol=_PRECISION, rtol=1e-9)
    return float(max(root - 2 * _PRECISION, low))
