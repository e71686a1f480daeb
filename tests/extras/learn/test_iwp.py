import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit
from scipy.stats import norm

from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.gaussian import GaussianRR, gaussian_sigma
from ldpaudit.extras.learn.corrections import label_targets
from ldpaudit.extras.learn.iwp import Objective, theorem_rule, theorem_step
from ldpaudit.extras.learn.iwp_losses import ExponentialLoss, LogLoss, QuadraticLoss
from ldpaudit.extras.learn.utility.learner import iwp_model
from ldpaudit.learners import IWPClassifier, IWPRegressor, noisy_risk_bias
from ldpaudit.mechanisms import Channel, ExplicitChannel, RandomizedResponse

EXACT = [QuadraticLoss(), ExponentialLoss()]
LOSSES = [*EXACT, LogLoss()]
LABELS = RandomizedResponse.from_epsilon((0, 1), 1.0)


def named(loss):
    return type(loss).__name__


def expected(function, variance, far):
    """E of a function of √s Z by a fine grid, wide enough for what grows like e^{far √s Z}."""
    root = math.sqrt(variance)
    nodes = np.linspace(-12 - far * root, 12 + far * root, 40_001)
    weights = norm.pdf(nodes) * (nodes[1] - nodes[0])
    return float(function(root * nodes) @ weights)


@pytest.mark.parametrize("loss", EXACT, ids=named)
@pytest.mark.parametrize("variance", [0.3, 60.0])
@pytest.mark.parametrize("margin", [-1.3, 2.0])
def test_corrected_and_smoothed_losses_against_quadrature(loss, variance, margin):
    u, h = np.array([margin]), 1e-6
    for j in (0, 1, 2):
        found = expected(lambda z, j=j: loss.corrected(margin + z, variance, j), variance, 1)
        assert found == pytest.approx(float(loss.derivative(u, j)[0]), rel=1e-8, abs=1e-8)
    grown = expected(lambda z: loss.derivative(margin + z, 0), variance, 1)
    assert loss.smoothed(u, variance)[0] == pytest.approx(grown, rel=1e-9)
    drift = (loss.corrected(u, variance + h) - loss.corrected(u, variance - h)) / (2 * h)
    assert -0.5 * loss.corrected(u, variance, 2)[0] == pytest.approx(drift[0], rel=1e-6, abs=1e-12)
    spread = expected(lambda z: loss.corrected(margin + z, variance, 1) ** 2, variance, 2)
    spread -= float(loss.derivative(u, 1)[0]) ** 2
    # The deviation over all margins is that at one of them, times the mean of e^{−2u}.
    mean = math.sinh(6) / 6 if isinstance(loss, ExponentialLoss) else 1.0
    one = math.exp(-2 * margin) if isinstance(loss, ExponentialLoss) else 1.0
    assert loss.error(variance).deviation ** 2 == pytest.approx(spread * mean / one, rel=1e-6)


def quadrature(dimension):
    """Nodes and weights of E over N(0, I): exact for what the closed forms need, to 1e-12."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1)
    product = np.stack(np.meshgrid(*[weights] * dimension, indexing="ij"), axis=-1)
    weights = product.reshape(-1, dimension).prod(axis=1)
    return grid.reshape(-1, dimension), weights / weights.sum()


@pytest.mark.parametrize("loss", EXACT, ids=named)
@pytest.mark.parametrize("truth", [0, 1])
def test_loss_and_gradient_are_unbiased(loss, truth):
    rng = np.random.default_rng(truth)
    x, theta, sigma = rng.normal(size=2), rng.normal(size=3) * 0.6, 0.8
    noisy = Objective(loss, sigma, 0.3, 9.0, True)
    clean = Objective(loss, 0.0, 0.3, 9.0, True)
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
    plain = clean.risk(theta, x + sigma * nodes, one.repeat(3600, 0), weights)
    assert abs(plain - clean.risk(theta, x[None], one, np.ones(1))) > 1e-3


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_of_every_loss(order, intercept):
    rng = np.random.default_rng(order)
    X, theta = rng.normal(size=(9, 2)), rng.normal(size=2 + intercept) * 0.7
    answers = label_targets(rng.integers(0, 2, 9), LABELS.channel)
    for loss in [*EXACT, LogLoss(fixed=order)]:
        problem = Objective(loss, 0.7, 0.2, 9.0, intercept)
        weights = rng.random(9)
        numeric = approx_fprime(theta, problem.risk, 1e-7, X, answers, weights)
        found = problem.gradient(theta, X, answers, weights)
        np.testing.assert_allclose(found, numeric, atol=2e-6)


def slope_errors(s, rows, orders):
    """bias² + variance/rows of the series of f', by a fine grid and the plain formula."""
    nodes = np.linspace(-10, 10, 4001)
    weights = norm.pdf(nodes) * (nodes[1] - nodes[0])
    margins = np.linspace(-3, 3, 61)
    derivative, errors = LogLoss().derivative, []
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


@pytest.mark.parametrize("s", [0.5, 4.0, 25.0])
@pytest.mark.parametrize("rows", [1, 10**6])
def test_the_order_has_the_least_mean_squared_error(s, rows):
    errors = slope_errors(s, rows, range(9))
    chosen = LogLoss(rows=rows).error(s)
    assert errors[chosen.order] <= 1.02 * errors.min()
    assert chosen.bias**2 + chosen.deviation**2 / rows == pytest.approx(
        errors[chosen.order], rel=2e-2
    )


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
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(20_000, 2))
        y = X @ [0.5, -0.5] + rng.normal(size=20_000)
        noisy = X + 2.0 * rng.normal(size=X.shape)
        best = np.linalg.solve(np.eye(2) / 3 + np.eye(2), [0.5 / 3, -0.5 / 3])
        for average, found in ((False, last), (True, mean)):
            model = IWPRegressor(sigma=2.0, average=average, **settings).fit(noisy, y)
            found.append(((model.coef_ - best) ** 2).sum())
    # About a quarter; with 12 squares in each sum; the seeds are fixed.
    assert sum(mean) < 0.5 * sum(last)
    stream = IWPRegressor(sigma=2.0, average=True, shuffle=False, **settings)
    whole = IWPRegressor(sigma=2.0, average=True, shuffle=False, **settings).fit(noisy, y)
    for start in range(0, 20_000, 6_400):
        stream.partial_fit(noisy[start : start + 6_400], y[start : start + 6_400])
    np.testing.assert_allclose(stream.coef_, whole.coef_, rtol=1e-12)


def test_the_steps_of_the_theorem():
    rule = {"strong": 0.1, "smooth": 2.0, "spread": 1.0, "distance": 5.0}
    assert theorem_step(1, **rule) == 0.25
    assert theorem_step(10**6, **rule) == pytest.approx(np.log(0.01 * 25 * 10**6) / (0.1 * 10**6))
    problem = Objective(QuadraticLoss(), 0.5, 0.1, 2.0, False)
    made = theorem_rule(problem, 3, 1.0, LABELS.noise, 128)
    assert made.keywords["smooth"] == pytest.approx(1.1)
    rng = np.random.default_rng(3)
    mechanism, X, truth, noisy, z = gaussian_release(100_000, rng, 0.5)
    clean = IWPClassifier(ridge=0.1, step=0.05).fit(X, truth)
    found = IWPClassifier(mechanism, ridge=0.1).fit(noisy, z)
    assert np.linalg.norm(found.coef_ - clean.coef_) < 0.2 * np.linalg.norm(clean.coef_)
    stream = IWPClassifier(mechanism, ridge=0.1).partial_fit(noisy, z)
    assert np.linalg.norm(stream.coef_ - clean.coef_) < 0.3 * np.linalg.norm(clean.coef_)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_the_bias_of_the_noisy_risk(loss):
    rng = np.random.default_rng(3)
    X, theta, sigma, flip = rng.normal(size=(40, 2)), np.array([0.7, -0.4]), 0.9, 0.2
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    bias = noisy_risk_bias(loss, theta, X, y, sigma, flip)
    noisy = np.repeat(X, 4_000, axis=0)
    noisy += sigma * rng.normal(size=noisy.shape)
    signs = np.repeat(y, 4_000) * np.where(rng.random(len(noisy)) < flip, -1, 1)
    values = loss.derivative(signs * (noisy @ theta), 0)
    clean = loss.derivative(y * (X @ theta), 0).mean()
    # Five standard errors: 6e-7 by chance.
    assert abs(values.mean() - clean - bias.total) < 5 * values.std() / np.sqrt(len(values))
    assert abs(bias.total) > 12 * values.std() / np.sqrt(len(values))
    assert noisy_risk_bias(loss, theta, X, y, 0.0, flip).features == pytest.approx(0, abs=1e-12)
    assert noisy_risk_bias(loss, theta, X, y, sigma, 0.0).labels == 0


@pytest.mark.parametrize("sigma", [0.8, 4.0, 8.0, 13.7])
def test_the_bias_is_right_at_any_noise(sigma):
    rng = np.random.default_rng(4)
    X, theta, y = rng.normal(size=(9, 3)), np.array([0.5, 1.0, -0.3]), np.array([1, -1, 1] * 3)
    s, margins = sigma**2 * (theta @ theta), y * (X @ theta)
    own, other = (float(np.exp(-sign * margins).mean()) for sign in (1, -1))
    bias = noisy_risk_bias(ExponentialLoss(), theta, X, y, sigma, 0.1)
    # Dufraiche et al., Example 1.
    assert bias.total == pytest.approx(math.exp(s / 2) * (0.9 * own + 0.1 * other) - own, rel=1e-9)
    assert bias.features == pytest.approx(0.9 * own * math.expm1(s / 2), rel=1e-9)
    squared = noisy_risk_bias(QuadraticLoss(), theta, X, y, sigma, 0.1)
    assert squared.features == pytest.approx(0.9 * s / 2, rel=1e-9)


def test_a_bias_beyond_a_float_or_signs_that_are_none_are_refused():
    X, y = np.ones((2, 1)), np.array([1, -1])
    with pytest.raises(InputError, match="too large for a float"):
        noisy_risk_bias(ExponentialLoss(), [10.0], X, y, 10.0, 0.1)
    with pytest.raises(InputError, match="-1 and"):
        noisy_risk_bias(ExponentialLoss(), [1.0], X, y * 2, 0.8, 0.1)


@pytest.mark.parametrize(("loss", "limit"), [("exponential", 3.78), ("log", 55.6)])
def test_the_gate_stands_where_the_gradient_is_half_noise(loss, limit):
    mechanism, _, _, noisy, z = gaussian_release(2000, np.random.default_rng(5), 2.0)
    settings = {"loss": loss, "step": 0.01}
    IWPClassifier(mechanism, radius=0.99 * math.sqrt(limit) / 2, **settings).fit(noisy, z)
    with pytest.raises(InputError, match=f"must be at most {limit:.3g}"):
        IWPClassifier(mechanism, radius=1.01 * math.sqrt(limit) / 2, **settings).fit(noisy, z)
    opened = {"exponential": ExponentialLoss, "log": LogLoss}[loss](worst=math.inf)
    IWPClassifier(mechanism, loss=opened, radius=5.0, step=0.01).fit(noisy, z)


def test_the_noise_of_a_linear_gradient_averages_out_over_all_rows():
    QuadraticLoss().check(3000.0 - 1e-6, 2000)
    QuadraticLoss().check(1e6, None)
    with pytest.raises(InputError, match="must be at most 3e"):
        QuadraticLoss().check(3001.0, 2000)
    mechanism, _, _, noisy, z = gaussian_release(200, np.random.default_rng(5), 4.0)
    with pytest.raises(InputError, match="must be at most 300"):
        IWPClassifier(mechanism, radius=5.0).fit(noisy, z)
    with pytest.raises(InputError, match="must be at most 300"):
        IWPRegressor(mechanism, radius=5.0).fit(noisy, z)


@pytest.mark.parametrize("loss", ["quadratic", "exponential", "log"])
def test_no_loss_learns_the_opposite(loss):
    """Too large a ball is refused, and the command's own ball learns: 62 % at least, of 80."""
    sigma = gaussian_sigma(4.0, 1e-5, 2.0)
    with pytest.raises(InputError, match="use a smaller radius"):
        IWPClassifier(sigma=sigma, loss=loss, radius=8.0).fit(np.eye(2), np.array([0, 1]))
    rng = np.random.default_rng(0)
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


WITH_NOISE = gaussian_release(100, np.random.default_rng(5), 2.0)
OVERFLOWING = {"loss": "exponential", "radius": 1e4, "step": 1e3, "batch_size": 10}


@pytest.mark.parametrize(
    ("learner", "last", "words"),
    [
        (IWPClassifier(WITH_NOISE[0]), 7, r"(outside|rows): \d"),
        (IWPClassifier(GaussianRR((0, 1), 1.0)), 0, "cannot be inverted"),
        (IWPClassifier(GaussianRR((0, 1, 2), 0.1)), 0, "3 labels"),
        (IWPClassifier(WITH_NOISE[0], sigma=1.0), 0, "must agree"),
        (IWPClassifier(WITH_NOISE[0], ridge=0.0), 0, "strong convexity"),
        (IWPClassifier(**OVERFLOWING), 0, "overflowed"),
    ],
)
def test_bad_input_names_its_limit(learner, last, words):
    with pytest.raises(InputError, match=words):
        learner.fit(WITH_NOISE[3], np.r_[WITH_NOISE[4][1:], last])


def test_the_variance_of_targets_is_that_of_the_label_with_the_most():
    channel = Channel(np.array([[0.9, 0.1], [0.4, 0.6]]), (0, 1), (0, 1))
    model = IWPClassifier(ExplicitChannel(channel))
    model._label_noise = SimpleNamespace(channel=channel, codes=lambda y, _: y)
    targets, factor = model._answers(np.array([0, 1]))
    # The inverse is [[1.2, −0.2], [−0.8, 1.8]]: of label 1 the second moment is larger.
    assert targets == pytest.approx(np.array([[1.2, -0.2], [-0.8, 1.8]]))
    assert factor == pytest.approx(0.4 * 0.2**2 + 0.6 * 1.8**2 - 1)
