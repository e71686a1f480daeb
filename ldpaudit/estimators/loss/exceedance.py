"""J(τ) = P(ν ≥ τ): the share of people who lose at least τ nats, and its lower bound.

The bound follows the theorem's proof with exact binomial intervals in place of its Chernoff bound,
and with the branches of H as they are (its Eq. (14) lacks a factor 1/n and takes the same branch
twice). Each query's loss is bounded from below with error probability δ′ ≤ γs over the index
labels, so by Markov's inequality at most a share s of all people have a wrong bound, with
probability at least 1 − γ. Independent queries then give a binomial count. Where the smoothness is
given as numbers, C and β, half of δ′ is for the neighbours' labels and half for how much of all
people their ball holds.

References
----------
Busa-Fekete et al. (2023), Theorem 6.6, Lemmas D.2–D.6.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.release import FloatArray, IndexArray


@dataclass(frozen=True)
class ErrorBudget:
    """How the error probability δ of a bound on J(τ) is spent.

    Attributes
    ----------
    total : float
        δ = ``count`` + ``markov`` + ``prior``.
    count : float
        δ″, the binomial bound of the share of queries.
    markov : float
        γ, the event that more than a share ``slack`` of all people have a wrong loss bound.
    prior : float
        The event that a label's share lies outside its interval.
    slack : float
        s, taken off the bound.
    """

    total: float
    count: float
    markov: float
    prior: float
    slack: float

    @classmethod
    def of(cls, total: float, slack: float = 0.001) -> "ErrorBudget":
        """Split δ: a half for the count, a twentieth for the prior, the rest for γ."""
        return cls(total, total / 2, 0.45 * total, 0.05 * total, slack)

    @property
    def per_query(self) -> float:
        """δ′ = γs, the error probability of each query's loss bound."""
        return self.markov * self.slack


def smoothness_bias(n: int, k: int, error: float, constant: float, power: float = 1.0) -> float:
    """Return how far a neighbourhood's mean posterior may lie from its row's, at 1 − error.

    P(label | features) changes by at most C·μ^β within a ball of nearer rows that holds the share μ
    of people (Assumption 6.5). What the ball up to the k-th nearest of n independent rows holds has
    a Beta(k, n − k + 1) law, or is smaller where distances tie: exact where Lemma D.3 has 2k/n.
    """
    share = float(beta.ppf(1 - error, k, n - k + 1))
    return constant * math.pow(share, power)


@dataclass(frozen=True)
class Exceedance:
    """J(τ) on a grid.

    Attributes
    ----------
    grid : float64 array of shape (g,)
        τ in nats, ascending, every multiple of 1/2 within its range included.
    value : float64 array of shape (g,)
        The share of queries whose estimated loss is at least τ.
    low : float64 array of shape (g,) or None
        A lower confidence bound at each point alone.
    queries : int
        m.
    """

    grid: FloatArray
    value: FloatArray
    low: FloatArray | None
    queries: int


def exceedance(
    losses: FloatArray, lower: FloatArray, budget: ErrorBudget, grid: FloatArray
) -> Exceedance:
    """Return J(τ) from the losses of m independent queries.

    Parameters
    ----------
    losses : float64 array of shape (m,)
        Estimated losses; may be infinite.
    lower : float64 array of shape (m,)
        Lower bounds L_i ≤ losses, each with error probability ``budget.per_query``.
    budget : ErrorBudget
        Its ``count`` is the error probability of the binomial bound, at each τ alone.
    grid : float64 array of shape (g,)
        Ascending.

    Returns
    -------
    Exceedance
        low(τ) = max(0, CP_lower(#{L_i ≥ τ}, m; δ″) − s).
    """
    m = len(losses)
    value = _at_least(losses, grid) / m
    counts = _at_least(lower, grid)
    low = np.maximum(clopper_pearson_lower(counts, m, budget.count) - budget.slack, 0.0)
    return Exceedance(grid, value, np.minimum(low, value), m)


def expected_exceedance(losses: FloatArray, weights: FloatArray, grid: FloatArray) -> Exceedance:
    """Return J(τ) without a bound from losses that each query has with some probability.

    Parameters
    ----------
    losses, weights : float64 arrays of shape (m, r)
        What each of m queries may lose, and with what probability; rows of weights sum to 1.
    grid : float64 array of shape (g,)
        Ascending.
    """
    m = len(losses)
    order = np.argsort(losses, axis=None)
    below = np.concatenate([[0.0], np.cumsum(weights.ravel()[order])])
    place = np.searchsorted(losses.ravel()[order], grid, side="left")
    counts = np.floor(m - below[place] + 1e-6).astype(np.int64)
    return Exceedance(grid, np.clip(counts, 0, m) / m, None, m)


def loss_grid(losses: FloatArray) -> FloatArray:
    """Return the grid of τ for these losses: tenths over their range, then halves up to 25.

    Starts at the last multiple of 1/2 at or below the least loss, or at 0 if that is lower.
    """
    finite = losses[np.isfinite(losses)]
    least = min(0.0, float(finite.min())) if len(finite) else 0.0
    most = max(1.0, float(finite.max())) if len(finite) else 1.0
    first, last = math.floor(2 * least), math.ceil(2 * most)
    fine = np.arange(5 * first, 5 * last + 1) * 0.1
    # The grid of losses reaches at least this far, in nats, so that a policy's τ lies on it.
    coarse = np.arange(last + 1, int(2 * 25.0) + 1) / 2
    return np.asarray(np.round(np.concatenate([fine, coarse]), 10))


def _at_least(losses: FloatArray, grid: FloatArray) -> IndexArray:
    ordered = np.sort(losses)
    return (len(losses) - np.searchsorted(ordered, grid, side="left")).astype(np.int64)
