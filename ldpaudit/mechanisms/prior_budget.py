"""The part of ε that a private prior takes, and how it is drawn."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.block_law import BlockLaw
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.parameters import check_epsilon
from ldpaudit.release import FloatArray


def prior_budget(epsilon: float, k: int, n: int) -> float:
    """Return ε₁ = √(k/n) in nats for the prior of k labels on n rows; the labels get ε − ε₁."""
    # Ghazi et al. (2023), Theorem 7 and the remark after it.
    first = math.sqrt(k / n) if n > 0 else math.inf
    if not first < check_epsilon(epsilon):
        raise InputError(
            f"A private prior of {k:,} labels on {n:,} rows spends epsilon = {first:.4g}, which "
            f"leaves nothing of {epsilon:.4g}; give a public prior, a larger epsilon or fewer "
            "labels."
        )
    return first


def check_prior_budget(epsilon: float, k: int, n: int) -> None:
    """Refuse an ε₁ in nats with which the prior of k labels on n rows would be noise alone."""
    # The noise moves each count by about 2/ε₁; that of k counts must not add up to more than n
    # rows.
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
    counts: Sequence[int] | npt.NDArray[np.integer], epsilon: float, rng: Randomness = None
) -> FloatArray:
    """Estimate the prior from label counts with ε-DP, for the mechanisms that need a prior."""
    # Counts with discrete Laplace noise of scale 2/ε₁, clipped at 0 and scaled to sum to 1, are
    # ε₁-DP when one person's label changes (two counts change by one). The mechanism that follows
    # gets ε − ε₁.
    # Ghazi et al. (2023) and Badanidiyuru et al. (2023), Algorithm 4.
    histogram = np.asarray(counts)
    if histogram.ndim != 1 or histogram.dtype.kind not in "iu" or (histogram < 0).any():
        raise InputError("The label counts must be a list of integers that are not negative.")
    # P(X = x) ∝ e^{−|x|ε/2}.
    law = BlockLaw(np.ones(1), check_epsilon(epsilon) / 2)
    clipped = np.maximum(histogram + law.draw(len(histogram), rng), 0).astype(np.float64)
    total, k = float(clipped.sum()), len(histogram)
    return clipped / total if total > 0 else np.full(k, 1 / k)
