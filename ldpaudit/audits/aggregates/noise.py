"""The noise of released sums: a certified bound of its ε, and its agreement with the claim."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.mechanisms.capabilities import BagSums
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate

_SAME_NOISE: Final = "each bag's sum gets independent noise from one distribution"
_CLIPPED: Final = f"{_SAME_NOISE}; it may have been clipped to the bag's size"
_ROUNDING: Final = 1e-6


def residuals_of(context: AuditContext) -> FloatArray:
    """Return released less true sums of all bags, float64 of shape (b,); true labels are known."""
    true = np.bincount(context.bags.members, weights=context.truth)
    return np.asarray(context.bags.released - true)


def unclipped_residuals(context: AuditContext) -> FloatArray:
    """Return the residuals of bags that have labels of both classes, float64 of shape (b',).

    There, clipping a noisy sum to 0 … size leaves it on the same side of the true sum and of its
    neighbours. Where all labels are the same a clipped sum never lies beyond the true one, and the
    few far residuals would look like little noise.
    """
    sizes = np.bincount(context.bags.members)
    true = np.bincount(context.bags.members, weights=context.truth)
    return residuals_of(context)[(true > 0) & (true < sizes)]


def bag_bound(residuals: FloatArray, alpha: float) -> float:
    """Return a lower bound of ε from the noise of released sums, in nats, at level 1 − alpha.

    Neighbouring sums differ by 1, so for additive noise F(t) ≤ e^ε F(t − 1), and the same for the
    upper tail; t = 0, where Laplace and geometric noise reach ε. Each tail of the residuals, which
    are released less true sums, float64 of shape (b,), gets half of alpha.
    """
    return max(0.0, *(_tail_bound(side * residuals, alpha / 2) for side in (1, -1)))


def _tail_bound(residuals: FloatArray, alpha: float) -> float:
    n = len(residuals)
    low = float(trials_lower(int((residuals <= _ROUNDING).sum()), n, alpha / 2))
    high = float(trials_upper(int((residuals <= _ROUNDING - 1).sum()), n, alpha / 2))
    return math.log(low / high) if low > 0 else 0.0


def noise_estimates(context: AuditContext, claim: BagSums) -> Iterator[Estimate]:
    """Yield how the noise of the released sums agrees with the claim, where some is claimed."""
    if claim.noise == "none":
        return
    confidence, residuals = context.plan.confidence, residuals_of(context)
    mixed = unclipped_residuals(context)
    yield Estimate.lower_bound(
        "aggregates.epsilon_lower",
        "Noise of the released sums",
        bag_bound(mixed, 1 - confidence),
        confidence,
        axis="epsilon",
        unit="nats",
        n=len(mixed),
        method="how much likelier noise of at most 0 is than of at most −1, and the same "
        "upwards, in bags with labels of both classes; Clopper–Pearson, corrected for both",
        assumptions=(_CLIPPED,),
        reference="Hoeffding (1956), Theorem 5",
    )
    yield Estimate.upper_bound(
        "aggregates.noise_consistency",
        "Noise of the sums against the declaration (p-value)",
        max(_noise_p_value(residuals, claim), 1e-12),
        confidence,
        n=len(residuals),
        unit="p-value",
        method="p-value: largest distance of the noise's distribution function from the "
        "declared one (Kolmogorov–Smirnov; for whole numbers conservative)",
        assumptions=(_SAME_NOISE,),
    )


def _noise_p_value(residuals: FloatArray, claim: BagSums) -> float:
    """Return the p-value of the two-sided Kolmogorov–Smirnov test.

    With a discrete law the test compares at the jumps only, and its continuous null distribution
    is conservative.
    """
    from scipy.stats import kstwo

    if claim.noise == "geometric":
        values, counts = np.unique(np.rint(residuals), return_counts=True)
        empirical = np.cumsum(counts) / len(residuals)
        before = empirical - counts / len(residuals)
        distance = max(
            float(np.abs(empirical - claim.noise_cdf(values)).max()),
            float(np.abs(before - claim.noise_cdf(values - 1)).max()),
        )
    else:
        ordered = claim.noise_cdf(np.sort(residuals))
        steps = np.arange(len(ordered) + 1) / len(ordered)
        distance = float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))
    return float(kstwo.sf(distance, len(residuals)))
