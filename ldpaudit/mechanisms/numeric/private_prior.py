"""A private estimate of the labels' prior, for the mechanisms that need one.

Counts with discrete Laplace noise of scale 2/ε₁, clipped at 0 and scaled to sum to 1, are ε₁-DP
when one person's label changes (two counts change by one). The mechanism that follows gets ε − ε₁.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.noise.discrete import BlockLaw
from ldpaudit.mechanisms.parameters import check_epsilon
from ldpaudit.release import FloatArray


def prior_budget(epsilon: float, k: int, n: int) -> float:
    """Return ε₁ = √(k/n) in nats for the prior; ε − ε₁ is left for the labels.

    Parameters
    ----------
    epsilon : float
        ε in nats of the whole release.
    k, n : int
        The numbers of labels and rows.

    Raises
    ------
    InputError
        If ε₁ leaves nothing for the labels: there are too few rows for this ε.

    References
    ----------
    Ghazi et al. (2023), Theorem 7 and the remark after it.
    """
    first = math.sqrt(k / n) if n > 0 else math.inf
    if not first < check_epsilon(epsilon):
        raise InputError(
            f"A private prior of {k} labels on {n} rows spends epsilon = {first:.4g}, which leaves "
            f"nothing of {epsilon:.4g}; give a public prior, a larger epsilon or fewer labels."
        )
    return first


def check_prior_budget(epsilon: float, k: int, n: int) -> None:
    """Refuse an ε₁ with which the prior would be noise alone.

    Parameters
    ----------
    epsilon : float
        ε₁ in nats: the noise moves each count by about 2/ε₁.
    k, n : int
        The numbers of labels and rows.

    Raises
    ------
    InputError
        If the noise of k counts adds up to more than n rows.
    """
    least = 2 * k / max(n, 1)
    if check_epsilon(epsilon) < least:
        digits = 2 - math.floor(math.log10(least))
        enough = math.ceil(least * 10**digits) / 10**digits
        raise InputError(
            f"A private prior at epsilon = {epsilon:.4g} would be noise alone: {k} "
            f"label{'s' * (k > 1)} on {n} rows need at least {enough:.3g}; spend more, or give a "
            "public prior."
        )


def private_prior(
    counts: Sequence[int] | npt.NDArray[np.integer],
    epsilon: float,
    rng: Randomness = None,
) -> FloatArray:
    """Estimate the prior from label counts with ε-DP.

    Parameters
    ----------
    counts : int array of shape (k,)
        The rows with each label; their sum n is public.
    epsilon : float
        ε₁ in nats.
    rng : numpy.random.Generator or BitSource, optional
        The source of randomness; default: the operating system. A NumPy generator is for
        simulations, not for a real release.

    Returns
    -------
    float64 array of shape (k,)
        Sums to 1; uniform if noise left no count above 0.

    References
    ----------
    Ghazi et al. (2023) and Badanidiyuru et al. (2023), Algorithm 4.
    """
    histogram = np.asarray(counts)
    if histogram.ndim != 1 or histogram.dtype.kind not in "iu" or (histogram < 0).any():
        raise InputError("The label counts must be a list of integers that are not negative.")
    # P(X = x) ∝ e^{−|x|ε/2}.
    law = BlockLaw(np.ones(1), check_epsilon(epsilon) / 2)
    noisy = histogram + law.draw(len(histogram), rng)
    clipped = np.maximum(noisy, 0).astype(np.float64)
    total = float(clipped.sum())
    k = len(histogram)
    return clipped / total if total > 0 else np.full(k, 1 / k)
