"""Clopper–Pearson bounds: the counts are the primary datum, an interval is a function of them."""

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from ldpaudit.release import FloatArray

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
    """Return the two-sided interval at level 1 − alpha, alpha/2 in each tail."""
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
