"""An upper bound of the privacy of several releases of the same labels.

The bound goes through privacy loss distributions. A mechanism's exact curve δ(ε) is that of some
pair of distributions, which dominates every pair of labels; composing dominating pairs dominates
the composition (Zhu et al. 2022, Theorem 10), and connecting the dots of the curve at the points of
a grid only raises it (Doroshenko et al. 2022, Algorithm 1).
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.mechanisms.analysis import Privacy

_GRID: Final = 4000
"""Points of the privacy loss grid for the sum of all ε."""
_FINEST: Final = 1e-4


class UpperBound:
    """An upper bound of the privacy of independent releases of the same labels.

    Parameters
    ----------
    releases : sequence of Privacy
        Each with a finite ε; at least one.

    Raises
    ------
    InputError
        If some ε is infinite.
    MissingDependencyError
        If dp-accounting is not installed.
    """

    def __init__(self, releases: Sequence[Privacy]) -> None:
        if not all(math.isfinite(release.epsilon) for release in releases):
            raise InputError("A release without a finite ε cannot be composed: nothing bounds it.")
        self._releases = tuple(releases)
        self.epsilon = math.fsum(release.epsilon for release in releases)
        self._interval = max(_FINEST, self.epsilon / _GRID)
        self._joint = self._composed()

    def _composed(self) -> Any:
        joint: Any = None
        # Equal releases share one curve, computed once; ε = 0 gives nothing away.
        leaking = [release for release in self._releases if release.epsilon]
        losses = {id(r.curves): _loss_distribution(r, self._interval) for r in leaking}
        for release in leaking:
            loss = losses[id(release.curves)]
            joint = loss if joint is None else joint.compose(loss)
        return joint

    def delta(self, epsilon: float) -> float:
        """Return a δ ≥ δ(ε) for which the joint release is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        if self._joint is None or epsilon >= self.epsilon:
            return 0.0
        return min(float(self._joint.get_delta_for_epsilon(epsilon)), 1.0)

    def rdp(self, alpha: float) -> float:
        """Return the sum of the Rényi parameters at order α > 0, in nats: an upper bound.

        References
        ----------
        Mironov (2017), Proposition 1.
        """
        return min(math.fsum(release.curves.rdp(alpha) for release in self._releases), self.epsilon)


def _loss_distribution(release: Privacy, interval: float) -> Any:
    """Return a pessimistic privacy loss distribution made of the exact δ(ε)."""
    pmf, distribution = _library()
    steps = math.ceil(release.epsilon / interval * (1 - 1e-12)) + 1
    above = np.array([release.curves.delta(step * interval) for step in range(steps + 1)])
    above[-1] = 0.0
    grid = interval * np.arange(1, steps + 1)
    # The curve of a symmetric pair below 0: δ(−ε) = 1 − e^{−ε} + e^{−ε} δ(ε).
    below = -np.expm1(-grid) + np.exp(-grid) * above[1:]
    deltas = np.clip(np.concatenate([below[::-1], above]), 0.0, 1.0)
    places = np.arange(-steps, steps + 1)
    falling = np.minimum.accumulate(deltas)
    masses = pmf.create_pmf_pessimistic_connect_dots(interval, places, falling)
    return distribution.PrivacyLossDistribution(masses)


def _library() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    except ImportError:
        raise MissingDependencyError(
            "These releases can only be composed with dp-accounting: pip install "
            "'ldpaudit[accounting]'."
        ) from None
    return pld_pmf, privacy_loss_distribution
