import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit
from scipy.stats import norm

from ldpaudit.commands.utility.iwp import iwp_model
from ldpaudit.errors import InputError
from ldpaudit.learners import IWPClassifier, IWPRegressor, noisy_risk_bias
from ldpaudit.learners.corrections import label_targets
from ldpaudit.learners.iwp.descent import (
    ClassificationLoss,
    Objective,
    RegressionLoss,
    StepRule,
    theorem_rule,
)
from ldpaudit.learners.iwp.losses import ExponentialLoss, QuadraticLoss, SeriesLoss, log_loss
from ldpaudit.learners.iwp.truncation import best_order, truncation_bias
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.response.gaussian import gaussian_sigma
from ldpaudit.mechanisms.response.gaussian_rr import GaussianRR

CLOSED = [QuadraticLoss(), ExponentialLoss()]
LABELS = RandomizedResponse.from_epsilon((0, 1), 1.0)


def quadrature(dimension):
    """Nodes and weights of E over N(0, I): exact for what the closed forms need, to 1e-12."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1)
    product = np.stack(np.meshgrid(*[weights] * dimension, indexing="ij"), axis=-1)
    weights = product.reshape(-1, dimension).prod(axis=1)
    return grid.reshape(-1, dimension), weights / weights.sum()


@pytest.mark.parametrize("loss", CLOSED, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("truth", [0, 1])
def test_loss_and_gradient_are_unbiased(loss, truth):
    rng = np.random.default_rng(truth)
    x, theta, sigma = rng.normal(size=2), rng.normal(size=3) * 0.6, 0.8
    noisy = Objective(ClassificationLoss(loss), sigma, 0.3, 9.0, True)
    clean = Objective(ClassificationLoss(loss), 0.0, 0.3, 9.0, True)
    nodes, weights = quadrature(2)
    risk, gradient = 0.0, np.zeros(3)
    targets = label_targets(np.array([0, 1]), LABELS.channel)
    for z in (0, 1):
        answers = np.repeat(targets[[z]], len(nodes), axis=0)
        share = LABELS.channel.matrix[truth, z]
        risk += share * noisy.risk(theta, x + sigma * nodes, answers, weights)
        gradient += share * noisy.gradient(theta, x + sigma * nodes, answers, weights)
    one = np.eye(2)[[truth]]
    assert risk == pytest.approx(clean.risk(theta, x[None], one, np.ones(1)), abs=1e-9)
    expected = clean.gradient(theta, x[None], one, np.ones(1))
    np.testing.assert_allclose(gradient, expected, atol=1e-9)
    # Without the correction it is not.
    assert (
        abs(
            sum(clean.risk(theta, x + sigma * nodes, one.repeat(3600, 0), weights) for _ in "a")
            - clean.risk(theta, x[None], one, np.ones(1))
        )
        > 1e-3
    )


def test_regression_is_unbiased_in_its_gradient():
    nodes, weights = quadrature(2)
    x, y, theta = np.array([0.4, -1.0]), 0.7, np.array([1.0, 0.5, -0.2])
    noisy = Objective(RegressionLoss(), 0.9, 0.1, 9.0, True)
    clean = Objective(RegressionLoss(), 0.0, 0.1, 9.0, True)
    found = noisy.gradient(theta, x + 0.9 * nodes, np.full(len(nodes), y), weights)
    expected = clean.gradient(theta, x[None], np.array([y]), np.ones(1))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_of_every_loss(order, intercept):
    rng = np.random.default_rng(order)
    X, theta = rng.normal(size=(9, 2)), rng.normal(size=2 + intercept) * 0.7
    answers = label_targets(rng.integers(0, 2, 9), LABELS.channel)
    for loss in [*CLOSED, log_loss(order)]:
        problem = Objective(ClassificationLoss(loss), 0.7, 0.2, 9.0, intercept)
        weights = rng.random(9)
        numeric = approx_fprime(theta, problem.risk, 1e-7, X, answers, weights)
        found = problem.gradient(theta, X, answers, weights)
        np.testing.assert_allclose(found, numeric, atol=2e-6)


def test_derivatives_of_the_log_loss():
    loss, u = log_loss(), np.array([-30.0, -2.0, -0.3, 0.0, 1.0, 4.0])
    for j in range(1, 9):
        numeric = (loss.derivative(u + 1e-5, j - 1) - loss.derivative(u - 1e-5, j - 1)) / 2e-5
        np.testing.assert_allclose(loss.derivative(u, j), numeric, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("variance", [0.05, 0.5, 2.0, 10.0])
def test_truncation_bias_is_what_sampling_finds(variance):
    rng = np.random.default_rng(0)
    draws = np.sqrt(variance) * rng.normal(size=400_000)
    derivative = log_loss().derivative
    for order in (0, 1, 2):
        series = log_loss(order)
        for u in (-2.0, 0.0, 2.0):
            values = series.corrected(u + draws, variance)
            error = values.mean() - derivative(np.array(u), 0)
            # Five standard errors: 6e-7 for one comparison.
            slack = 5 * values.std() / np.sqrt(len(draws))
            assert abs(error) <= truncation_bias(derivative, variance, 2.0, order) + slack


def slope_errors(s, rows, orders):
    """bias² + variance/rows of the series of f', by a fine grid and the plain formula."""
    nodes = np.linspace(-10, 10, 4001)
    weights = norm.pdf(nodes) * (nodes[1] - nodes[0])
    margins = np.linspace(-3, 3, 61)
    derivative, errors = log_loss().derivative, []
    for order in orders:
        terms = [
            (-s / 2) ** k / math.factorial(k) * derivative(margins[:, None] + np.sqrt(s) * nodes, j)
            for k, j in ((k, 2 * k + 1) for k in range(order + 1))
        ]
        slope = np.sum(terms, axis=0)
        mean = slope @ weights
        spread = slope**2 @ weights - mean**2
        errors.append(((mean - derivative(margins, 1)) ** 2 + spread / rows).mean())
    return np.array(errors)


@pytest.mark.parametrize("s", [0.5, 2.0, 4.0, 10.0, 25.0])
@pytest.mark.parametrize("rows", [1, 128, 10**6])
def test_the_order_has_the_least_mean_squared_error(s, rows):
    errors = slope_errors(s, rows, range(9))
    chosen = best_order(log_loss().derivative, s, 3.0, rows)
    assert errors[chosen.order] <= 1.02 * errors.min()
    assert chosen.bias**2 + chosen.deviation**2 / rows == pytest.approx(
        errors[chosen.order], rel=2e-2
    )


def test_the_order_falls_with_the_noise_and_rises_with_the_rows():
    derivative = log_loss().derivative
    orders = [best_order(derivative, s, 3.0, 128).order for s in (2.0, 4.0, 8.0, 25.0)]
    assert orders == [2, 2, 1, 1]
    # Many rows pay for the variance of a high order: five terms at least.
    assert best_order(derivative, 1.0, 3.0, 10**6).order >= 4
    assert best_order(derivative, 1.0, 3.0, 1).order <= 1
    assert truncation_bias(derivative, 0.05, 3.0, 2) < 1e-5


@pytest.mark.parametrize(("sigma", "settings"), [(1.0, {}), (1.0, {"step": 0.01, "radius": 3.0})])
def test_the_log_loss_learns_under_moderate_noise(sigma, settings):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60_000, 3))
    X /= np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
    truth = (rng.random(len(X)) < expit(12 * X[:, 0] - 12 * X[:, 1])).astype(np.int32)
    noise = RandomizedResponse.from_epsilon((0, 1), 2.0).noise
    mechanism = GaussianRR((0, 1), noise, 1.0, sigma)
    noisy = mechanism.release_features(X, rng, simulation=True)
    z = mechanism.sample(truth, rng)
    found = IWPClassifier(mechanism, loss="log", **settings).fit(noisy, z)
    fixed = IWPClassifier(mechanism, loss=log_loss(1), **settings).fit(noisy, z)
    best = np.mean((X[:, 0] > X[:, 1]) == truth)
    assert np.mean(found.predict(X) == truth) > best - 0.03
    assert np.mean(fixed.predict(X) == truth) > best - 0.03
    error = found.gradient_error()
    assert error.order <= 2
    assert error.deviation < 1.0
    assert error.bias < 0.1
    assert IWPClassifier().fit(X, truth).gradient_error() is None


def test_a_loss_of_the_class_is_recovered():
    # cos is in the class: W_s⁻¹[cos] = e^{s/2} cos, and the series converges to it.
    loss = SeriesLoss(lambda u, j: np.cos(u + j * np.pi / 2), growth=0.01, fixed=12)
    u = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(loss.corrected(u, 1.5), np.exp(0.75) * np.cos(u), atol=1e-9)


def gaussian_release(n, rng, sigma, epsilon=3.0):
    X = rng.uniform(-1, 1, size=(n, 2)) / np.sqrt(2)
    truth = (rng.random(n) < expit(4 * X[:, 0] - 2 * X[:, 1])).astype(np.int32)
    mechanism = GaussianRR(
        (0, 1), RandomizedResponse.from_epsilon((0, 1), epsilon).noise, 1.0, sigma
    )
    noisy = mechanism.release_features(X, rng, simulation=True)
    return mechanism, X, truth, noisy, mechanism.sample(truth, rng)


@pytest.mark.parametrize("loss", ["quadratic", "exponential", "log"])
def test_it_finds_the_clean_minimum_and_plain_descent_does_not(loss):
    rng = np.random.default_rng(1)
    mechanism, X, truth, noisy, z = gaussian_release(200_000, rng, 0.7)
    settings = {"loss": loss, "ridge": 0.1, "radius": 3.0, "step": 0.05, "batch_size": 512}
    clean = IWPClassifier(**settings).fit(X, truth)
    found = IWPClassifier(mechanism, **settings).fit(noisy, z)
    naive = IWPClassifier(**settings).fit(noisy, z)
    assert np.linalg.norm(found.coef_ - clean.coef_) < 0.2 * np.linalg.norm(clean.coef_)
    assert np.linalg.norm(naive.coef_ - clean.coef_) > 0.4 * np.linalg.norm(clean.coef_)
    assert np.mean(found.predict(X) == truth) > 0.77
    assert (found.truncation_bias() > 0) == (loss == "log")


def test_regression_and_a_stream():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100_000, 2))
    y = X @ [1.0, -2.0] + 0.5 + rng.laplace(size=100_000)
    noisy = X + 0.8 * rng.normal(size=X.shape)
    settings = {"ridge": 0.01, "radius": 5.0, "step": 0.005}
    found = IWPRegressor(sigma=0.8, **settings)
    for start in range(0, 100_000, 10_000):
        found.partial_fit(noisy[start : start + 10_000], y[start : start + 10_000])
    np.testing.assert_allclose(found.coef_, [1.0, -2.0], atol=0.25)
    assert found.n_steps_ == 10 * 79
    naive = IWPRegressor(**settings).fit(noisy, y)
    assert np.abs(naive.coef_ - [1.0, -2.0]).max() > 0.5


def test_the_average_has_a_fraction_of_the_last_iterates_variance():
    last, mean = [], []
    settings = {"ridge": 1.0, "radius": 2.0, "step": 0.02, "fit_intercept": False}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(40_000, 2))
        y = X @ [0.5, -0.5] + rng.normal(size=40_000)
        noisy = X + 2.0 * rng.normal(size=X.shape)
        best = np.linalg.solve(np.eye(2) / 3 + np.eye(2), [0.5 / 3, -0.5 / 3])
        for average, found in ((False, last), (True, mean)):
            model = IWPRegressor(sigma=2.0, average=average, **settings).fit(noisy, y)
            found.append(((model.coef_ - best) ** 2).sum())
    # About a quarter; with 24 squares in each sum one half is passed with p < 1e-2 by chance, and
    # the seeds are fixed.
    assert sum(mean) < 0.5 * sum(last)
    stream = IWPRegressor(sigma=2.0, average=True, shuffle=False, **settings)
    whole = IWPRegressor(sigma=2.0, average=True, shuffle=False, **settings).fit(noisy, y)
    for start in range(0, 40_000, 12_800):
        stream.partial_fit(noisy[start : start + 12_800], y[start : start + 12_800])
    np.testing.assert_allclose(stream.coef_, whole.coef_, rtol=1e-12)


def test_the_steps_of_the_theorem():
    rule = StepRule(strong=0.1, smooth=2.0, spread=1.0, distance=5.0)
    assert rule.at(1) == 0.25
    assert rule.at(10**6) == pytest.approx(np.log(0.01 * 25 * 10**6) / (0.1 * 10**6))
    problem = Objective(ClassificationLoss(QuadraticLoss()), 0.5, 0.1, 2.0, False)
    made = theorem_rule(problem, 3, 1.0, LABELS.noise, 128)
    assert made.smooth == pytest.approx(1.1)
    rng = np.random.default_rng(3)
    mechanism, X, truth, noisy, z = gaussian_release(100_000, rng, 0.5)
    clean = IWPClassifier(ridge=0.1, step=0.05).fit(X, truth)
    found = IWPClassifier(mechanism, ridge=0.1).fit(noisy, z)
    assert np.linalg.norm(found.coef_ - clean.coef_) < 0.2 * np.linalg.norm(clean.coef_)
    stream = IWPClassifier(mechanism, ridge=0.1).partial_fit(noisy, z)
    assert np.linalg.norm(stream.coef_ - clean.coef_) < 0.3 * np.linalg.norm(clean.coef_)


@pytest.mark.parametrize("loss", [*CLOSED, log_loss()], ids=["quadratic", "exponential", "log"])
def test_the_bias_of_the_noisy_risk(loss):
    rng = np.random.default_rng(3)
    X, theta, sigma, flip = rng.normal(size=(40, 2)), np.array([0.7, -0.4]), 0.9, 0.2
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    bias = noisy_risk_bias(loss, theta, X, y, sigma, flip)
    noisy = np.repeat(X, 50_000, axis=0)
    noisy += sigma * rng.normal(size=noisy.shape)
    signs = np.repeat(y, 50_000) * np.where(rng.random(len(noisy)) < flip, -1, 1)
    values = loss.corrected(signs * (noisy @ theta), 0.0)
    clean = loss.corrected(y * (X @ theta), 0.0).mean()
    # Five standard errors: 6e-7 by chance.
    assert abs(values.mean() - clean - bias.total) < 5 * values.std() / np.sqrt(len(values))
    assert abs(bias.total) > 50 * values.std() / np.sqrt(len(values))
    assert noisy_risk_bias(loss, theta, X, y, 0.0, flip).features == pytest.approx(0, abs=1e-12)
    assert noisy_risk_bias(loss, theta, X, y, sigma, 0.0).labels == 0


def test_the_bias_of_the_exponential_risk_has_a_closed_form():
    rng = np.random.default_rng(4)
    X, theta, y = rng.normal(size=(9, 3)), np.array([0.5, 1.0, -0.3]), np.array([1, -1, 1] * 3)
    own, other = (float(np.exp(-s * y * (X @ theta)).mean()) for s in (1, -1))
    bias = noisy_risk_bias(ExponentialLoss(), theta, X, y, 0.8, 0.1)
    grown = math.exp(0.64 * (theta @ theta) / 2)
    assert bias.total == pytest.approx(grown * (0.9 * own + 0.1 * other) - own, rel=1e-9)
    assert bias.labels == pytest.approx(0.1 * (other - own), rel=1e-12)
    assert bias.features == pytest.approx(0.9 * own * (grown - 1), rel=1e-9)
    with pytest.raises(InputError, match="-1 and"):
        noisy_risk_bias(ExponentialLoss(), theta, X, y * 2, 0.8, 0.1)


@pytest.mark.parametrize("s", [4.0, 46.9, 187.7])
def test_the_risk_bias_is_exact_at_large_noise(s):
    """With quadrature it was 75 % too small at s = 94, and nearly 0 at 188."""
    X, y, theta = np.array([[1.0, 0.0], [0.0, -1.0]]), np.array([1, -1]), np.array([0.3, 0.4])
    margins, sigma = y * (X @ theta), math.sqrt(s) / 0.5
    grown = noisy_risk_bias(ExponentialLoss(), theta, X, y, sigma, 0.0)
    assert grown.total == pytest.approx(np.exp(-margins).mean() * math.expm1(s / 2), rel=1e-9)
    assert noisy_risk_bias(QuadraticLoss(), theta, X, y, sigma, 0.0).total == pytest.approx(s / 2)


@pytest.mark.parametrize("loss", ["quadratic", "exponential", "log"])
def test_no_loss_learns_the_opposite(loss):
    """Too large a ball is refused, and the command's own ball learns: 62 % at least, of 80."""
    sigma = gaussian_sigma(4.0, 1e-5, 2.0)
    with pytest.raises(InputError, match="use a smaller radius"):
        IWPClassifier(sigma=sigma, loss=loss, radius=8.0).fit(np.eye(2), np.array([0, 1]))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-0.5, 0.5, (20_000, 4))
        truth = (rng.random(20_000) < expit(X @ [6, -4, 2, 0])).astype(np.int32)
        labels = RandomizedResponse.from_epsilon((0, 1), 1.0)
        mechanism, noisy = GaussianRR((0, 1), labels.noise, 1.0, sigma), rng.normal(X, sigma)
        model = iwp_model(mechanism, sigma, noisy.astype(np.float32), loss, rng)
        found = model.fit(noisy, mechanism.sample(truth, rng)).predict(X)
        assert np.mean(found == truth) > 0.62


def test_parameters_stay_in_the_ball():
    mechanism, _, _, noisy, z = gaussian_release(2000, np.random.default_rng(4), 0.5)
    found = IWPClassifier(mechanism, radius=0.1, step=1.0).fit(noisy, z)
    assert np.linalg.norm(found.theta_) <= 0.1 + 1e-12


def test_bad_input_names_its_limit():
    mechanism, _, _, noisy, z = gaussian_release(100, np.random.default_rng(5), 2.0)
    with pytest.raises(
        InputError, match=r"must be at most 5\d\.?\d*, where a step still learns. Got 100"
    ):
        IWPClassifier(mechanism, loss="log", radius=5.0).fit(noisy, z)
    grown = SeriesLoss(lambda u, j: np.cos(u + j * np.pi / 2), growth=0.1)
    with pytest.raises(InputError, match=r"must be below 2.5. Got 4"):
        IWPClassifier(mechanism, loss=grown, radius=1.0).fit(noisy, z)
    with pytest.raises(InputError, match=r"\d row"):
        IWPClassifier(mechanism).fit(noisy, np.r_[z[1:], 7])
    with pytest.raises(InputError, match="cannot be inverted"):
        IWPClassifier(GaussianRR((0, 1), 1.0)).fit(noisy, z)
    with pytest.raises(InputError, match="3 labels"):
        IWPClassifier(GaussianRR((0, 1, 2), 0.1)).fit(noisy, z)
    with pytest.raises(InputError, match="must agree"):
        IWPClassifier(mechanism, sigma=1.0).fit(noisy, z)
    with pytest.raises(InputError, match="strong convexity"):
        IWPClassifier(mechanism, ridge=0.0).fit(noisy, z)
    with pytest.raises(InputError, match="overflowed"):
        IWPClassifier(loss="exponential", radius=1e4, step=1e3, batch_size=10).fit(noisy, z)
