"""The Gaussian mechanism: exact δ(ε), its inverse, and two calibrations of σ.

Δ is the ℓ2 sensitivity: 2R for vectors of a ball of radius R.
"""

import math
from typing import Final

from scipy.optimize import brentq
from scipy.special import log_ndtr

from ldpaudit.mechanisms.parameters import check_delta, check_epsilon, check_positive

_LARGEST_EPSILON: Final = 1e9
_TOLERANCE: Final = 1e-13


def gaussian_delta(sigma: float, sensitivity: float, epsilon: float) -> float:
    """Return the exact δ(ε) = Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ).

    Parameters
    ----------
    sigma, sensitivity : float
        σ > 0 and Δ > 0.
    epsilon : float
        Any real number of nats: a negative one occurs when mechanisms are composed.

    References
    ----------
    Balle and Wang (2018), Theorem 8.
    """
    half, slope = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    first, second = float(log_ndtr(half - slope)), float(log_ndtr(-half - slope))
    # In the form Φ(a)(1 − ratio) a small δ keeps its digits.
    return math.exp(first) * -math.expm1(min(epsilon + second - first, 0.0))


def gaussian_epsilon(sigma: float, sensitivity: float, delta: float) -> float:
    """Return the smallest ε ≥ 0 in nats with δ(ε) ≤ δ, to a relative 1e-12, rounded up."""
    check_positive("sigma", sigma)
    check_positive("sensitivity", sensitivity)
    check_delta(delta)
    if gaussian_delta(sigma, sensitivity, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(sigma, sensitivity, high) > delta and high < _LARGEST_EPSILON:
        high *= 2
    root = float(
        brentq(lambda e: gaussian_delta(sigma, sensitivity, e) - delta, 0.0, high, xtol=_TOLERANCE)
    )
    while gaussian_delta(sigma, sensitivity, root) > delta:
        root = root * (1 + 1e-12) + 1e-15
    return root


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least σ that is (ε, δ)-DP, to a relative 1e-12, rounded up.

    Parameters
    ----------
    epsilon : float
        ε > 0 in nats.
    delta : float
        δ in (0, 1).
    sensitivity : float
        Δ > 0.

    References
    ----------
    Balle and Wang (2018), Theorem 8, solved for σ.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    check_positive("sensitivity", sensitivity)
    low = high = 1.0
    while gaussian_delta(high, 1.0, epsilon) > delta:
        high *= 2
    while gaussian_delta(low, 1.0, epsilon) <= delta:
        low /= 2
    root = float(
        brentq(lambda s: gaussian_delta(s, 1.0, epsilon) - delta, low, high, xtol=_TOLERANCE * low)
    )
    while gaussian_delta(root, 1.0, epsilon) > delta:
        root *= 1 + 1e-12
    return root * sensitivity


def classical_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return σ = Δ √(2 log(1.25/δ))/ε, proved to be (ε, δ)-DP for ε ≤ 1 only.

    References
    ----------
    Dwork and Roth (2014), Theorem A.1; Dufraiche et al., Proposition 2.2, with Δ = 2R. At
    δ = 1e-5 it first fails at ε = 8.42.
    """
    spread = math.sqrt(2 * math.log(1.25 / check_delta(delta)))
    return check_positive("sensitivity", sensitivity) * spread / check_epsilon(epsilon)
