import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.instance_loss import (
    ErrorBudget,
    smoothness_bias,
)

BUDGET = ErrorBudget.of(0.01)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_smoothness_covers_what_a_ball_averages_away(power: float) -> None:
    """P(label | x) falls steeply within a ball: its mean alone misses, widened by C·μ^β it holds.

    x is uniform on [0, 1] and η(x) = C·|x − ½|^β: every ball up to a row at a distance r holds at
    least the share r. The k-th nearest row's distance is seen, so the bias is that of the worst η.
    """
    n, k, constant, error, missed = 400, 40, 0.9, 0.05, 0
    bias = smoothness_bias(n, k, error, constant, power)
    assert bias < constant * (2 * k / n) ** power  # Lemma D.3, for k ≥ 4 log(1/error).
    for seed in range(200):
        far = np.sort(np.abs(np.random.default_rng(seed).random(n) - 0.5))[:k]
        mean = float((constant * far**power).mean())
        assert mean > 0  # η(½) = 0: without widening every interval around the mean is off.
        missed += mean > bias
        assert constant * (2 * far[-1]) ** power >= mean
    assert missed <= binom.isf(1e-6, 200, error)
    shares = np.array(
        [2 * np.sort(np.abs(np.random.default_rng(s).random(n) - 0.5))[k - 1] for s in range(400)]
    )
    # The bound of the share itself is exact: missed as often as its error says.
    most = smoothness_bias(n, k, error, 1.0)
    assert binom.ppf(1e-6, 400, error) <= (shares > most).sum() <= binom.isf(1e-6, 400, error)
