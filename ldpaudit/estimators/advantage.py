"""What a release can add to a label-inference attack: exact values and ceilings.

An attacker who sees features and released label guesses right with probability
E_x Σ_z max_y η_y(x) T[y, z]; with the features alone with E_x max_y η_y(x). The difference is the
additive advantage (Busa-Fekete et al. 2024; Wu et al. 2023). All ε in nats.

References
----------
Busa-Fekete et al. (2024), Auditing Privacy Mechanisms via Label Inference Attacks.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from ldpaudit.release import FloatArray

_ORDERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0)


def randomized_response_advantage(posterior: FloatArray, epsilon: float) -> FloatArray:
    """Return the additive advantage that k-ary randomized response gives at each row, shape (n,).

    With y* the most probable label, Σ_{z ≠ y*} (e^ε η_z − η_{y*})₊ / (e^ε + k − 1).

    Parameters
    ----------
    posterior : float64 array of shape (n, k)
        The exact η.
    epsilon : float
        ε ≥ 0 in nats; ∞ allowed.
    """
    k = posterior.shape[1]
    best = posterior.max(axis=1, keepdims=True)
    # Divided by e^ε throughout, so that large ε do not overflow.
    shrink = math.exp(-epsilon)
    gain = np.clip(posterior - shrink * best, 0.0, None).sum(axis=1)
    gain -= best[:, 0] * (1.0 - shrink)
    return np.asarray(np.clip(gain / (1.0 + (k - 1) * shrink), 0.0, None))


def accuracy_ceiling(largest: FloatArray, epsilon: float) -> FloatArray:
    """Return the highest probability of a right guess under any ε-private label channel.

    p e^ε / (1 + p(e^ε − 1)) with p the largest class probability given the features: the bound on
    the posterior of any one label, whatever the number of classes.

    Parameters
    ----------
    largest : float64 array
        max_y η_y(x), in [0, 1].
    epsilon : float
        ε ≥ 0 in nats; ∞ gives 1.
    """
    odds = largest + (1.0 - largest) * math.exp(-epsilon)
    safe = np.where(odds > 0, odds, 1.0)
    return np.asarray(np.where(odds > 0, largest / safe, 0.0))


def advantage_ceiling(epsilon: float, k: int) -> float:
    """Return the largest additive advantage over all priors of an ε-private channel on k labels.

    ½ tanh(ε/2) for two labels (reached by randomized response at even odds), tanh(ε/4) for any
    number of labels. The often-quoted tanh(ε/2) is valid but loose.
    """
    return 0.5 * math.tanh(epsilon / 2) if k == 2 else math.tanh(epsilon / 4)


def utility_bound(
    rdp: Callable[[float], float], p_star: float, k: int, least_loss: float = 1.0
) -> float:
    """Return the upper bound on any attack's expected utility that Rényi label privacy implies.

    The utility is 1 minus the mean of a loss in [0, 1]; with the 0/1 loss it is the accuracy.

    1 − (e^{−ε_α} δ^{1/(α−1)} (1 − p*) − (k − 1)δ) ℓ*, minimised over δ in closed form and over α:
    the best of some orders and ∞, then by a bounded search between its neighbours. The privacy must
    hold with the features drawn given the label: for a release with unprotected features the RDP
    is that of features and label together.

    Parameters
    ----------
    rdp : callable
        ε_α in nats for an order α > 1; is called with ``math.inf`` too.
    p_star : float
        The probability of the most frequent label, or an upper bound of it.
    k : int
        The number of labels.
    least_loss : float
        ℓ* in [0, 1], the least loss of a guess that is not the true label; 1 for the 0/1 loss.

    References
    ----------
    Busa-Fekete et al. (2023), Definition 4.4 and Theorem 5.2.
    """

    def bound(alpha: float) -> float:
        return 1.0 if alpha <= 2 else _bounded_utility(rdp(alpha), alpha, p_star, k)

    bounds = [bound(alpha) for alpha in _ORDERS]
    best = int(np.argmin(bounds))
    # Every order gives a valid bound, so it is no matter if the search misses the least one.
    low, high = _ORDERS[max(best - 1, 0)], _ORDERS[min(best + 1, len(_ORDERS) - 1)]
    # At orders up to 2 the bound below is 1 whatever δ: the bracket is convex in δ and 0 at δ = 0.
    found = minimize_scalar(
        lambda x: bound(1 + math.exp(x)),
        bounds=(math.log(low - 1), math.log(high - 1)),
        method="bounded",
        options={"maxiter": 24},
    )
    # At α = ∞ the factor of δ is 1, and δ → 0 is best.
    limit = 1.0 - math.exp(-rdp(math.inf)) * (1.0 - p_star)
    return float(1 - (1 - min(1.0, limit, found.fun, *bounds)) * least_loss)


def _bounded_utility(epsilon: float, alpha: float, p_star: float, k: int) -> float:
    power = 1.0 / (alpha - 1.0)
    scale = math.exp(-epsilon) * (1.0 - p_star)
    # The derivative of scale·δ^power − (k − 1)δ vanishes here.
    delta = float((scale * power / (k - 1)) ** (1.0 / (1.0 - power)))
    return 1.0 - (scale * float(delta**power) - (k - 1) * delta)
