"""How many neighbours to count, and how many rows to ask."""

import math
from bisect import bisect_left

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower


def default_neighbors(n_index: int, dimensions: int | None = None) -> int:
    """Return how many neighbours to count by default: k as a function of the index size.

    4 √n in feature space, n^(3/4) in one coordinate (the score of a learned metric), at least 20
    and at most a tenth of the index.

    Two uses pull apart. The error of η̂ is smallest where bias and variance balance, at 0.5 to 1
    √n in feature space: k = 200 for n = 50,000 and 200 to 500 for 250,000 on a Gaussian mixture in
    18 dimensions, 50 to 100 for Adult (24,000) and skin (122,000). The lower bound on the privacy
    loss wants more: its Clopper–Pearson interval at error 5e-6 cannot show log-odds above
    log(k / 12.2), and the bias costs it little, since averaging over a ball draws η̂ to the prior
    and the loss down. The mean lower bound was largest at 4 to 8 √n (k = 2,000 of 50,000, 2,000 to
    5,000 of 250,000, 1,000 for Adult; on skin it still grew at 10,000) and flat around it, so
    4 √n, between two of the sizes tried, should keep nearly all of it but on skin; the error of η̂
    is then 0.10 where 0.087 is possible. Too large a k also costs validity: on the mixture no row's
    bound exceeded its true loss up to k = 5,000, but 0.04 % of rows did at k = n/5.

    In one coordinate the bias is small and both want more: on the mixture the error was smallest
    at k = 1,000 of 10,000, 2,000 of 50,000 and 5,000 to 10,000 of 250,000, and the mean bound
    largest at 1,000, 5,000 and 10,000.

    Parameters
    ----------
    n_index : int
        The number of index rows n.
    dimensions : int, optional
        The width of the points.

    Returns
    -------
    int
        k, at least 1 and at most n.
    """
    wanted = math.pow(n_index, 0.75) if dimensions == 1 else 4 * math.sqrt(n_index)
    return min(n_index, max(20, min(round(wanted), n_index // 10)))


def queries_needed(precision: float = 0.005, delta: float = 0.005, worst: float = 0.5) -> int:
    """Return how many random query rows pin a share of rows down.

    Parameters
    ----------
    precision : float
        The largest distance allowed between the observed share J and its bound, in (0, 1).
    delta : float
        The error probability of the one-sided Clopper–Pearson bound on the share: δ'' of the
        bound on J, not the δ' of the single neighbourhoods. Half of a two-sided interval's error.
    worst : float
        How close to 1/2 the share, or what it leaves of 1, may come, in [0, 0.5].

    Returns
    -------
    int
        The smallest multiple of 100 for which J − lower(J) ≤ precision at every such count; 66,600
        by default, whatever the share is. Fewer rows than these in the release: ask them all.
    """
    if not (0 < precision < 1 and 0 < delta < 0.5):
        raise InputError(
            "The 'precision' must be in (0, 1) and 'delta' in (0, 0.5). "
            f"Got {precision} and {delta} instead."
        )
    most = 1
    while _widest(100 * most, delta, worst) > precision:
        most *= 2
    enough = bisect_left(
        range(100, 100 * most, 100), True, key=lambda m: _widest(m, delta, worst) <= precision
    )
    return 100 * (1 + enough)


def _widest(m: int, delta: float, worst: float) -> float:
    """Return the largest distance of a count's share of m from its lower bound."""
    shares = np.linspace(0.25, 1.0, 151)
    if worst < 0.5:
        shares = np.concatenate([np.linspace(0, worst, 50), np.linspace(1 - worst, 1, 50)])
    counts = np.unique(np.round(m * shares).astype(np.int64))
    return float(np.max(counts / m - clopper_pearson_lower(counts, m, delta)))
