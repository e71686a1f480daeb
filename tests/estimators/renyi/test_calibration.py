"""Calibration is the ridge regression that an optimiser finds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from ldpaudit.estimators.renyi.discriminators import discriminator


@pytest.mark.parametrize(("shift", "scale"), [(0.5, 1.0), (0.3, 4.0), (0.0, 0.2)])
def test_slope_and_intercept(shift: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    p, q = scale * rng.normal(shift, 1, 120), scale * rng.normal(-shift, 1, 300)

    def loss(beta: np.ndarray) -> float:
        n = 420
        ours = n / 2 * np.logaddexp(0, -(beta[0] * p + beta[1])).mean()
        theirs = n / 2 * np.logaddexp(0, beta[0] * q + beta[1]).mean()
        return ours + theirs + discriminator._RIDGE / 2 * ((beta - [1, 0]) ** 2).sum()

    best = minimize(loss, [1.0, 0.0], tol=1e-12).x
    found = discriminator._calibration(p, q)
    assert found == pytest.approx((max(best[0], 0), best[1]), abs=1e-4)
    assert found[0] >= 0


def test_a_slope_is_never_negative() -> None:
    rng = np.random.default_rng(1)
    p, q = rng.normal(-1, 1, 300), rng.normal(1, 1, 300)
    assert discriminator._calibration(p, q)[0] == 0.0
