"""A private estimate of the labels' prior, for the mechanisms that need one.

Counts with Laplace noise of scale 2/ε₁, clipped at 0 and scaled to sum to 1, are ε₁-DP when one
person's label changes (two counts change by one). The mechanism that follows gets ε − ε₁.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.noise.block_law import BlockLaw
from ldpaudit.mechanisms.parameters import check_epsilon
from ldpaudit.release import FloatArray

Noise = Literal["discrete-laplace", "laplace"]


@dataclass(frozen=True)
class BudgetSplit:
    """ε in nats, divided between the prior and the labels.

    Parameters
    ----------
    prior, labels : float
        ε₁ and ε₂; the whole release is (ε₁ + ε₂)-label-DP.
    """

    prior: float
    labels: float


def split_budget(epsilon: float, k: int, n: int) -> BudgetSplit:
    """Return ε₁ = √(k/n) for the prior and the rest for the labels.

    Parameters
    ----------
    epsilon : float
        ε in nats.
    k, n : int
        How many labels and how many rows.

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
    return BudgetSplit(first, epsilon - first)


def private_prior(
    counts: Sequence[int] | npt.NDArray[np.integer],
    epsilon: float,
    rng: Randomness = None,
    *,
    noise: Noise = "discrete-laplace",
) -> FloatArray:
    """Estimate the prior from label counts with ε-DP.

    Parameters
    ----------
    counts : int array of shape (k,)
        How many rows have each label; their sum n is public.
    epsilon : float
        ε₁ in nats.
    rng : numpy.random.Generator or BitSource, optional
        The source of randomness; default: the operating system. A NumPy generator is for
        simulations, not for a real release.
    noise : {"discrete-laplace", "laplace"}
        Integer noise, drawn from integers; or the papers' continuous noise in floating point, for
        simulations only: it needs a NumPy generator (Mironov 2012 breaks it otherwise).

    Returns
    -------
    float64 array of shape (k,)
        Sums to 1; uniform where noise left no count above 0.

    References
    ----------
    Ghazi et al. (2023) and Badanidiyuru et al. (2023), Algorithm 4.
    """
    histogram = np.asarray(counts)
    if histogram.ndim != 1 or histogram.dtype.kind not in "iu" or (histogram < 0).any():
        raise InputError("The label counts must be a list of integers that are not negative.")
    noisy = histogram + _noise(len(histogram), check_epsilon(epsilon), rng, noise)
    clipped = np.maximum(noisy, 0).astype(np.float64)
    total = float(clipped.sum())
    k = len(histogram)
    return clipped / total if total > 0 else np.full(k, 1 / k)


def _noise(
    k: int, epsilon: float, rng: Randomness, noise: Noise
) -> npt.NDArray[np.int64] | FloatArray:
    if noise == "discrete-laplace":
        # P(X = x) ∝ e^{−|x|ε/2}.
        return BlockLaw(np.ones(1), epsilon / 2).draw(k, rng)
    if noise != "laplace":
        raise InputError(f"The noise must be discrete-laplace or laplace. Got {noise!r} instead.")
    if not isinstance(rng, np.random.Generator):
        raise InputError("Continuous Laplace noise is for simulations: give a NumPy generator.")
    return rng.laplace(scale=2 / epsilon, size=k)
