"""How far the risk of noisy features and labels is from the clean one, part by part."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.learners.iwp.margin_losses import MarginLoss
from ldpaudit.mechanisms.parameters import check_number, check_proportion
from ldpaudit.release import FloatArray

_NODES = 401
_WIDTH = 9.0
_BLOCK = 1 << 12


class RiskBias(NamedTuple):
    """The parts of R̃(θ) − R(θ), the bias of the risk on noisy rows.

    Attributes
    ----------
    labels, features, both : float
        What the flipped labels add, what the features' noise adds, and their interaction.
    """

    labels: float
    features: float
    both: float

    @property
    def total(self) -> float:
        """R̃(θ) − R(θ)."""
        return self.labels + self.features + self.both


def noisy_risk_bias(
    loss: MarginLoss,
    theta: npt.ArrayLike,
    X: npt.ArrayLike,
    signs: npt.ArrayLike,
    sigma: float,
    flip: float,
) -> RiskBias:
    """Return the bias of the mean of f(y θᵀx) when features and labels are released with noise.

    Parameters
    ----------
    loss : MarginLoss
        f, uncorrected.
    theta : float array of shape (d,)
        θ.
    X : float array of shape (n, d)
        Clean features.
    signs : array of shape (n,)
        Clean labels, −1 and +1.
    sigma : float
        σ ≥ 0 of the Gaussian noise on each feature.
    flip : float
        The chance that a label is released as the other one: 1/(1 + e^ε), or λ/2.

    Returns
    -------
    RiskBias
        The mean over the rows; the mean over the noise in closed form, or, where there is none,
        by the trapezoidal rule, which needs a loss that grows like a power of the margin at most.

    References
    ----------
    Dufraiche et al., Theorem 4.2. For a loss of the margin the iterated Laplacians are
    ‖θ‖^{2k} f^{(2k)}, so each series is the Weierstrass transform of f at s = σ²‖θ‖², minus f.
    """
    weights = np.asarray(theta, dtype=np.float64)
    labels = np.asarray(signs, dtype=np.float64)
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise InputError("The 'signs' must be -1 and +1.")
    if not (math.isfinite(check_number("sigma", sigma)) and sigma >= 0):
        raise InputError(f"The 'sigma' parameter must be finite and ≥ 0. Got {sigma!r} instead.")
    keep = 1 - check_proportion("flip", flip)
    margins = labels * (np.asarray(X, dtype=np.float64) @ weights)
    s = sigma**2 * float(weights @ weights)
    own, other = (float(loss.corrected(u, 0.0).mean()) for u in (margins, -margins))
    smooth, smooth_other = (_smoothed(loss, u, s) for u in (margins, -margins))
    return RiskBias(
        (1 - keep) * (other - own), keep * (smooth - own), (1 - keep) * (smooth_other - other)
    )


def _smoothed(loss: MarginLoss, margins: FloatArray, s: float) -> float:
    """Return the mean over the margins of W_s[f] = E[f(u + √s Z)]."""
    if loss.order(s) is None:
        # A closed form of the inverse transform at −s is the transform at s.
        return float(loss.corrected(margins, -s).mean())
    nodes = np.linspace(-_WIDTH, _WIDTH, _NODES)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    total = 0.0
    for start in range(0, len(margins), _BLOCK):
        noisy = margins[start : start + _BLOCK, None] + math.sqrt(s) * nodes
        total += float((loss.corrected(noisy, 0.0) @ weights).sum())
    return total / len(margins)
