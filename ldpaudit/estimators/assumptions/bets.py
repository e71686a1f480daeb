"""Bets against independence: valid at every sample size, with no approximation.

A bet starts with 1 and stakes a part of what it has on each row. Where the assumption holds no bet
gains on average, so that P(wealth ≥ 1/α) ≤ α whatever it stakes on (Ville 1939): one over the
wealth is a valid p-value, and an average of several wealths is a wealth.
"""

from typing import Final

import numpy as np

from ldpaudit.release import FloatArray, IndexArray, IntArray

STAKES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of the wealth that bets on pairs stake."""
BOLDNESS: Final = (0.5, 1.0)
"""How far bets on rows follow a model: 1 as if it were right."""


def p_value(log_wealth: float) -> float:
    """Return the valid p-value of a bet, at most 1."""
    return float(np.exp(-max(log_wealth, 0.0)))


def average(log_wealths: FloatArray | list[float]) -> float:
    """Return the logarithm of the mean of several wealths."""
    logs = np.asarray(log_wealths, dtype=np.float64)
    return float(np.logaddexp.reduce(logs) - np.log(len(logs))) if len(logs) else 0.0


def bet_on_rows(outcomes: IntArray, strata: IndexArray, log_odds: FloatArray) -> float:
    """Bet that 0/1 outcomes depend on more than their stratum.

    Within a stratum all orders of the outcomes are equally likely if they do not. So each outcome
    is predicted from the counts of those still to come, tilted by ``log_odds``.

    Parameters
    ----------
    outcomes : int32 array of shape (n,)
        0 or 1.
    strata : int64 array of shape (n,)
        Codes from 0.
    log_odds : float64 array of shape (n,)
        How much likelier 1 is presumed to be than in the stratum at large, learnt on other rows.

    Returns
    -------
    float
        The logarithm of the wealth at the end.

    References
    ----------
    Shafer & Vovk (2019), Game-Theoretic Foundations; Grünwald, Henzi & Lardy (2023).
    """
    order = np.argsort(strata, kind="stable")
    ones, tilt = outcomes[order].astype(np.float64), log_odds[order]
    sizes = np.bincount(strata)
    ends = np.cumsum(sizes)
    of = np.repeat(np.arange(len(sizes)), sizes)
    # Rows of the stratum still to come, this one among them, and the ones among those.
    left = ends[of] - np.arange(len(ones))
    total = np.concatenate([[0.0], np.cumsum(ones)])
    share = (total[ends][of] - total[:-1]) / left
    logs = []
    for boldness in BOLDNESS:
        factor = np.exp(np.clip(boldness * tilt, -30, 30))
        gain = ones * np.log(factor) - np.log(share * factor + 1 - share)
        logs.append(float(gain.sum()))
    return average(logs)


def bet_on_pairs(
    outcomes: FloatArray, chances: FloatArray, first: IndexArray, second: IndexArray
) -> float:
    """Bet that the outcomes of two rows of a pair go together.

    Parameters
    ----------
    outcomes, chances : float64 arrays of shape (n,)
        0 or 1, and the chance of 1; a row whose chance is 0 or 1 takes no part.
    first, second : int64 arrays of shape (p,)
        Disjoint pairs of rows, chosen without their outcomes.

    Returns
    -------
    float
        The logarithm of the wealth at the end. (e₁ − p₁)(e₂ − p₂) has mean 0 where the two are
        independent; it is staked in units of the most that can be lost.
    """
    p, q = chances[first], chances[second]
    usable = (p > 0) & (p < 1) & (q > 0) & (q < 1)
    p, q = p[usable], q[usable]
    product = (outcomes[first[usable]] - p) * (outcomes[second[usable]] - q)
    units = product / np.maximum(p * (1 - q), q * (1 - p))
    return average([float(np.log1p(stake * units).sum()) for stake in STAKES])


def disjoint_pairs(clusters: IndexArray, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Return random disjoint pairs of rows of one cluster, int64 arrays of shape (p,) each."""
    order = rng.permutation(len(clusters))
    order = order[np.argsort(clusters[order], kind="stable")]
    codes = clusters[order]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    place = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    left = np.flatnonzero((place % 2 == 0)[:-1] & (codes[:-1] == codes[1:]))
    return order[left], order[left + 1]
