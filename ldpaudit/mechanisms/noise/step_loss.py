"""Privacy of two laws whose privacy loss takes only the values −ε, 0 and ε.

Randomized response and the staircase mechanisms are of this kind: everything follows from ε and the
total variation distance TV.
"""

import math

from ldpaudit.errors import InputError


def step_delta(total_variation: float, epsilon: float, at: float) -> float:
    """Return δ(ε') of two laws whose privacy loss takes only the values −ε, 0 and ε.

    The mass with loss ε is p = TV/(1 − e^{−ε}), and δ(ε') = p(1 − e^{ε' − ε})₊ for ε' ≥ 0.
    """
    if total_variation == 0:
        return 0.0
    mass = total_variation / -math.expm1(-epsilon)
    return mass * -math.expm1(min(at - epsilon, 0.0))


def step_rdp(total_variation: float, epsilon: float, alpha: float) -> float:
    """Return D_α of two laws whose privacy loss takes only the values −ε, 0 and ε, in nats.

    D_α = log(1 + t(E^α + E^{1−α} − E − 1))/(α − 1) with E = e^ε and t(E − 1) = TV, so that the
    bracket is t(E^α − 1)(1 − E^{1−α}).
    """
    if not alpha > 0:
        raise InputError(f"The order alpha must be above 0, got {alpha}.")
    if total_variation == 0:
        return 0.0
    if math.isinf(alpha) or math.isinf(epsilon):
        return epsilon
    if alpha == 1:
        return epsilon * total_variation
    log_t = math.log(total_variation) - math.log(math.expm1(epsilon))
    if (alpha - 1) * epsilon > 500:
        # (E^α − 1)(1 − E^{1−α}) is E^α to all digits, and 1 beside it is nothing.
        return (log_t + alpha * epsilon + math.log1p(-math.exp(-alpha * epsilon))) / (alpha - 1)
    bracket = math.expm1(alpha * epsilon) * -math.expm1((1 - alpha) * epsilon)
    return max(math.log1p(math.exp(log_t) * bracket) / (alpha - 1), 0.0)
