"""Constants that were taken over from a paper, each computed again by other means."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from ldpaudit.estimators.advantage import utility_bound
from ldpaudit.extras.learn.iwp import Objective, theorem_rule
from ldpaudit.extras.learn.iwp_losses import ExponentialLoss, LogLoss, MarginLoss, QuadraticLoss
from ldpaudit.mechanisms import RandomizedResponse

LOSSES = [QuadraticLoss(), ExponentialLoss(), LogLoss()]


def named(loss: MarginLoss) -> str:
    return type(loss).__name__


def printed(loss: MarginLoss, sigma: float, norm: float) -> float:
    """Return C²σ² of Theorem 5.3 for |x| ≤ 1, p = 1 and true labels, C of Eq. (8) as printed."""
    if isinstance(loss, QuadraticLoss):
        return max(2 * norm + 1, 1 + norm) ** 2 * sigma**2
    t, s = np.linspace(0, norm, 80)[:, None], np.linspace(0, sigma**2, 400)
    mixed = np.exp(-s * t * t / 2) * np.exp(t) * (t + 1 + s * t * t)
    return max(float(mixed.max()), math.exp(norm)) ** 2 * sigma**2


@pytest.mark.parametrize(
    ("loss", "sigma", "norm", "times"),
    [
        (ExponentialLoss(), 4.0, 0.5, 41.0),
        (ExponentialLoss(), 9.69, 0.2, 76.0),
        (QuadraticLoss(), 4.0, 0.5, 2.3),
        (QuadraticLoss(), 13.7, 0.5, 24.0),
    ],
)
def test_theorem_5_3_is_false_as_printed(
    loss: MarginLoss, sigma: float, norm: float, times: float
) -> None:
    """The exact variance of one row's gradient at x = 0, by quadrature, against its bound."""
    slopes = np.array([norm])
    problem = Objective(loss, sigma, 0.0, norm, False)

    def power(w: float, j: int) -> float:
        row = np.array([[sigma * w]]), np.array([[0.0, 1.0]]), np.ones(1)
        gradient = float(problem.gradient(slopes, *row)[0])
        return gradient**j * math.exp(-w * w / 2) / math.sqrt(2 * math.pi)

    first, second = (quad(power, -14, 14, args=(j,), limit=300)[0] for j in (1, 2))
    variance = second - first**2
    assert variance / printed(loss, sigma, norm) == pytest.approx(times, rel=0.03)
    assert variance <= loss.second_moment(sigma, norm, 1.0, 1)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_the_second_moment_is_the_largest_that_occurs(loss: MarginLoss) -> None:
    """Against simulation of the gradient that is descended, on rows of norm 1 in all directions."""
    rng, sigma, norm, p = np.random.default_rng(1), 1.1, 0.8, 3
    problem = Objective(loss, sigma, 0.0, norm, False)
    theta = np.array([norm, 0.0, 0.0])
    largest = 0.0
    for angle in np.linspace(0, math.pi, 5):
        clean = np.array([math.cos(angle), math.sin(angle), 0.0])
        noisy = clean + sigma * rng.normal(size=(3_000, p))
        rows = zip(noisy[:, None], strict=True)
        answers, ones = np.array([[0.0, 1.0]]), np.ones(1)
        gradients = np.array([problem.gradient(theta, row, answers, ones) for (row,) in rows])
        largest = max(largest, float((gradients**2).sum(axis=1).mean()))
    found = loss.second_moment(sigma, norm, 1.0, p)
    assert 0.85 * largest <= found <= 1.35 * largest


def test_the_error_of_the_log_loss_is_that_of_quadrature() -> None:
    loss = LogLoss()
    for variance in (4.0, 30.0):
        error = loss.error(variance)
        margins = np.linspace(-loss.reach, loss.reach, 61)
        series = LogLoss(fixed=error.order)

        def mean(u: float, j: int, s: float = variance, of: LogLoss = series) -> float:
            def value(z: float) -> float:
                slope = float(of.corrected(np.array(u + math.sqrt(s) * z), s, 1))
                return slope**j * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

            return float(quad(value, -10, 10, limit=200)[0])

        first, second = (np.array([mean(u, j) for u in margins]) for j in (1, 2))
        bias = math.sqrt(np.mean((first + expit(-margins)) ** 2))
        deviation = math.sqrt(np.mean(second - first**2))
        assert (error.bias, error.deviation) == pytest.approx((bias, deviation), rel=1e-6)


def test_the_factor_of_the_labels_is_their_variance() -> None:
    """S̃(S̃ − 1), S̃ = 1/(1 − e^{−ε}): the variance of a corrected label's share."""
    for epsilon in (0.3, 1.0, 4.0):
        noise = RandomizedResponse.from_epsilon(("no", "yes"), epsilon)
        share = noise.channel.inverse[:, 1]
        chances = noise.channel.matrix[1]
        variance = float(chances @ share**2 - (chances @ share) ** 2)
        larger = 1 / (1 - math.exp(-epsilon))
        assert variance == pytest.approx(larger * (larger - 1))
    problem = Objective(QuadraticLoss(), 0.5, 0.1, 2.0, False)
    made = theorem_rule(problem, 3, 1.0, 0.0, 128).keywords["spread"]
    assert theorem_rule(problem, 3, 1.0, 2.0, 128).keywords["spread"] == pytest.approx(9 * made)


def test_the_bound_of_attacks_is_for_any_loss() -> None:
    """Theorem 5.2: with a least loss of ½ for a wrong guess half as much is lost at least."""
    curve = lambda order: 0.3  # noqa: E731
    plain = utility_bound(curve, 0.6, 3)
    assert utility_bound(curve, 0.6, 3, 0.5) == pytest.approx(1 - 0.5 * (1 - plain))
    assert utility_bound(curve, 0.6, 3, 0.0) == 1
