"""Privacy and moments of noise, against oracles that share no code with them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import (
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    Laplace,
    Staircase,
    optimal_gamma,
)
from ldpaudit.mechanisms.prior_budget import private_prior

EPSILONS = st.floats(0.1, 8)
ALPHAS = (0.3, 0.5, 0.9, 1, 1.1, 2, 5, 32)
RANGE, GRID = LabelRange(2.0, 9.0), LabelRange(2, 9, 1)
CONTINUOUS = [Laplace, Staircase]
DISCRETE = [DiscreteLaplace, DiscreteStaircase]


def pieces(mechanism):
    """Bounds between which the densities of the extreme labels are smooth."""
    width, gamma = mechanism.labels.width, mechanism.shape or 0.5
    periods = math.ceil(45 / mechanism.epsilon) + 2
    steps = [width * (j + part) for j in range(periods) for part in (0.0, gamma)]
    edges = {side * step + shift for step in steps for side in (-1, 1) for shift in (0, width)}
    # Edges that differ by rounding alone would leave slivers in which both densities are off.
    merged = {round(edge, 9): edge + mechanism.labels.low for edge in edges}
    return sorted(merged.values())


def density(mechanism, x):
    """The density of the noise, written down from its definition."""
    width, epsilon, distance = mechanism.labels.width, mechanism.epsilon, np.abs(x)
    if mechanism.name == "laplace":
        return epsilon / (2 * width) * np.exp(-epsilon * distance / width)
    gamma, b = mechanism.shape, math.exp(-epsilon)
    height = (1 - b) / (2 * width * (gamma + b * (1 - gamma)))
    return height * b ** np.floor(distance / width + 1 - gamma)


def integral(mechanism, function):
    """∫ f(p(x), q(x)) dx for the densities of the extreme labels, by Gauss–Legendre per piece."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.array(pieces(mechanism))
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half + half * nodes).ravel()
    p, q = (density(mechanism, x - end) for end in mechanism.label_bounds)
    return float(np.sum((half * weights).ravel() * function(p, q)))


def pmf_oracle(mechanism, reach):
    """The pmf of X for |x| ≤ reach, written down from its definition."""
    n, epsilon = mechanism.labels.steps, mechanism.epsilon
    x = np.abs(np.arange(-reach, reach + 1))
    if mechanism.name == "discrete-laplace":
        weight = np.exp(-epsilon * x / n)
    else:
        weight = np.exp(-epsilon * ((x + n - mechanism.shape) // n))
    return weight / weight.sum()


def divergence(p, q, alpha):
    log_p, log_q = np.log(p), np.log(q)
    if alpha == 1:
        return float(np.sum(p * (log_p - log_q)))
    return math.log(np.sum(np.exp(alpha * log_p + (1 - alpha) * log_q))) / (alpha - 1)


@pytest.mark.parametrize("family", CONTINUOUS)
@given(epsilon=EPSILONS)
@settings(max_examples=6, deadline=None)
def test_continuous_privacy_is_the_integral(family, epsilon):
    mechanism = family(RANGE, epsilon)
    assert integral(mechanism, lambda p, _: p) == pytest.approx(1, abs=1e-12)
    ends = mechanism.binned([2.0], np.array([2.0, 9.0]))
    assert ends.epsilon == pytest.approx(epsilon, rel=1e-9)
    for at in (0.0, 0.3 * epsilon, 0.9 * epsilon, epsilon, 2 * epsilon):
        # The integrand has a kink inside a piece: less precise than the closed form.
        expected = integral(mechanism, lambda p, q, at=at: np.clip(p - math.exp(at) * q, 0, None))
        assert mechanism.delta(at) == pytest.approx(expected, abs=2e-3)
    for alpha in (0.3, 0.5, 0.9, 1.1, 2, 5):
        total = integral(mechanism, lambda p, q, a=alpha: p**a * q ** (1 - a))
        assert mechanism.rdp(alpha) == pytest.approx(math.log(total) / (alpha - 1), abs=1e-4)
    total = integral(mechanism, lambda p, q: p * np.log(p / q))
    assert mechanism.rdp(1) == pytest.approx(total, abs=1e-4)
    assert mechanism.rdp(math.inf) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("family", DISCRETE)
@given(epsilon=EPSILONS, steps=st.integers(1, 12))
@settings(max_examples=10, deadline=None)
def test_discrete_privacy_is_the_sum(family, epsilon, steps):
    mechanism = family(LabelRange(0, steps, 1), epsilon)
    reach = steps * (math.ceil(60 / epsilon) + 2)
    pmf = pmf_oracle(mechanism, reach)
    x = np.arange(-reach, reach + 1)
    np.testing.assert_allclose(mechanism.law.pmf(x), pmf, rtol=1e-12)
    np.testing.assert_allclose(
        mechanism.law.tail(np.arange(4)), [pmf[x >= j].sum() for j in range(4)], rtol=1e-12
    )
    assert mechanism.law.variance() == pytest.approx(float(x**2 @ pmf), rel=1e-9)
    assert mechanism.law.mean_absolute() == pytest.approx(float(np.abs(x) @ pmf), rel=1e-9)
    rows = [pmf[: len(pmf) - steps], pmf[steps:]]  # P(X = x) and P(X = x + n) on the same outputs.
    losses = np.log(rows[0] / rows[1])
    assert np.abs(losses).max() == pytest.approx(epsilon, rel=1e-9)
    for at in (0.0, 0.3 * epsilon, 0.9 * epsilon, epsilon, 2 * epsilon):
        expected = np.clip(rows[1] - math.exp(at) * rows[0], 0, None).sum()
        assert mechanism.delta(at) == pytest.approx(expected, abs=1e-11)
    for alpha in ALPHAS:
        expected = divergence(rows[1], rows[0], alpha)
        assert mechanism.rdp(alpha) == pytest.approx(expected, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("family", DISCRETE)
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_clipping_a_discrete_mechanism_keeps_its_privacy(family, epsilon):
    clipped = family(GRID, epsilon, clipped=True)
    assert clipped.channel is not None
    assert clipped.channel.epsilon == pytest.approx(epsilon, rel=1e-9)
    for at in (0.0, epsilon / 2):
        assert clipped.channel.delta(at) == pytest.approx(clipped.delta(at), abs=1e-12)
    for alpha in ALPHAS:
        expected = clipped.channel.rdp(alpha)
        assert clipped.rdp(alpha) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert family(GRID, epsilon).channel is None


@pytest.mark.parametrize("family", CONTINUOUS)
@given(epsilon=EPSILONS, clipped=st.booleans(), y=st.floats(2, 9))
@settings(max_examples=6, deadline=None)
def test_continuous_moments_are_integrals(family, epsilon, clipped, y):
    mechanism = family(RANGE, epsilon, clipped)
    width, gamma = RANGE.width, mechanism.shape or 0.5
    reach = math.ceil(45 / epsilon) + 2
    offsets = [side * width * (j + g) for j in range(reach) for g in (0, gamma) for side in (-1, 1)]
    edges = np.array(sorted({*(y + np.array(offsets)).tolist(), 2.0, 9.0}))
    nodes, weights = np.polynomial.legendre.leggauss(30)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half + half * nodes).ravel()
    mass = (half * weights).ravel() * density(mechanism, x - y)
    output = np.clip(x, 2, 9) if clipped else x
    at = np.array([y])
    mean = float(mass @ output)
    assert mechanism.bias(at)[0] == pytest.approx(mean - y, abs=1e-5 * width)
    spread = float(mass @ (output - mean) ** 2)
    assert mechanism.variance(at)[0] == pytest.approx(spread, rel=2e-5, abs=1e-6 * width**2)
    squared, absolute = mass @ (output - y) ** 2 / 2, mass @ np.abs(output - y)
    small = {"rel": 2e-5, "abs": 1e-5 * width}
    assert mechanism.expected_loss([1], "squared", at) == pytest.approx(squared, **small)
    assert mechanism.expected_loss([1], "absolute", at) == pytest.approx(absolute, **small)
    poisson = mass @ (output - y * np.log(output)) if clipped else math.inf
    assert mechanism.expected_loss([1], "poisson", at) == pytest.approx(poisson, **small)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_staircase_parameter_is_the_best(epsilon, loss):
    best = optimal_gamma(epsilon, loss)
    labels = np.array([2.0])
    values = [
        Staircase(RANGE, epsilon, False, gamma).expected_loss([1], loss, labels)
        for gamma in (best * 0.99, best, min(best * 1.01, 0.999))
    ]
    assert min(values) == values[1]
    assert values[1] <= Laplace(RANGE, epsilon).expected_loss([1], loss, labels)


def test_the_discrete_staircase_width_is_the_best():
    widths = [DiscreteStaircase(GRID, 2.0, False, r).variance()[0] for r in range(1, 8)]
    assert DiscreteStaircase(GRID, 2.0).variance()[0] == min(widths)
    # One step: the only staircase is the discrete Laplace mechanism.
    one = LabelRange(0, 1, 1)
    pair = DiscreteStaircase(one, 1.0), DiscreteLaplace(one, 1.0)
    assert pair[0].variance() == pytest.approx(pair[1].variance())


@pytest.mark.parametrize("epsilon", [0.2, 6.0])
def test_the_continuous_exponential_mechanism_is_its_integral(epsilon):
    mechanism = Exponential(LabelRange(1.0, 4.0), epsilon)

    def density(y, x):
        mass = 2 - math.exp(-epsilon * (y - 1) / 3) - math.exp(-epsilon * (4 - y) / 3)
        return math.exp(-epsilon * abs(x - y) / 3) * epsilon / 3 / mass

    def integrate_over(function, *points):
        return integrate.quad(function, 1, 4, points=points or None, epsabs=1e-13)[0]

    for alpha in (0.3, 0.5, 2, 7):
        total = integrate_over(lambda x, a=alpha: density(1.0, x) ** a * density(4.0, x) ** (1 - a))
        expected = math.log(total) / (alpha - 1)
        assert mechanism.rdp(alpha) == pytest.approx(expected, rel=2e-4, abs=1e-6)
    for at in (0.0, epsilon / 3):
        cross = 1 + 3 * (epsilon - at) / (2 * epsilon)
        total = integrate_over(
            lambda x, e=at: max(density(1.0, x) - math.exp(e) * density(4.0, x), 0), cross
        )
        assert mechanism.delta(at) == pytest.approx(total, abs=1e-5)
    for y in (1.0, 2.2, 4.0):
        at_y = np.array([y])
        mean = integrate_over(lambda x, y=y: x * density(y, x), y)
        assert mechanism.bias(at_y)[0] == pytest.approx(mean - y, abs=1e-5)
        spread = integrate_over(lambda x, y=y, m=mean: (x - m) ** 2 * density(y, x), y)
        assert mechanism.variance(at_y)[0] == pytest.approx(spread, rel=2e-5)
        absolute = integrate_over(lambda x, y=y: abs(x - y) * density(y, x), y)
        assert mechanism.expected_loss([1], "absolute", at_y) == pytest.approx(absolute, rel=2e-5)
        poisson = integrate_over(lambda x, y=y: (x - y * math.log(x)) * density(y, x), y)
        assert mechanism.expected_loss([1], "poisson", at_y) == pytest.approx(poisson, abs=1e-5)


def test_the_noise_has_scale_two_over_epsilon():
    rng = np.random.default_rng(5)
    k, epsilon, count = 10_000, 0.5, 10_000
    prior = private_prior(np.full(k, count), epsilon, rng)
    noisy = prior * (k * count)
    # Var of discrete Laplace noise 2q/(1−q)², q = e^{−1/b}, b = 2/ε. The total moves each value by
    # less than 1 %. 6 standard errors of a variance, kurtosis 6: 0.1.
    q = math.exp(-epsilon / 2)
    expected = 2 * q / (1 - q) ** 2
    assert np.var(noisy) == pytest.approx(expected, rel=0.15)
    # Where nothing is left of small counts the prior is uniform; it always sums to 1.
    priors = [private_prior([0, 0], 1.0, np.random.default_rng(seed)) for seed in range(30)]
    assert any(np.array_equal(prior, [0.5, 0.5]) for prior in priors)
    assert all(prior.sum() == pytest.approx(1) for prior in priors)
