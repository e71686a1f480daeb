"""IWP-SGD against plain SGD on the same release: excess risk, and the time of one pass.

The setting of Dufraiche et al., Figure 1: scikit-learn's make_classification scaled to [−1, 1]^p,
n = 10⁶, half of ε for the features (Gaussian noise, classical σ) and half for the label, δ = 1e-5,
one pass with batches of 128, step 1e-4, ℓ2 constant 5, ball of radius 0.5. The regression has
uniform features and a linear label in [−1, 1] with Gaussian noise. The excess risk is that of the
regularised clean empirical risk over its minimum; seconds are processor seconds of one thread.
Averaged: the average of the iterates in place of the last one (the paper's). Closed form: least
squares with σ² taken off the released features' second moments, scaled back to the ball.

    python benchmarks/iwp_sgd.py [draws]
"""

import math
import sys
import time
from types import SimpleNamespace

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from ldpaudit.learners import IWPClassifier, IWPRegressor
from ldpaudit.mechanisms.gaussian import GaussianRR, classical_sigma
from ldpaudit.mechanisms.response import lambda_of_epsilon
from ldpaudit.models.iwp import Objective
from ldpaudit.models.iwp_losses import ExponentialLoss, LogLoss, QuadraticLoss

ROWS = 1_000_000
SGD = {"ridge": 5.0, "radius": 0.5, "step": 1e-4, "fit_intercept": False, "shuffle": False}
# The ridge keeps the parameters far inside the ball, at whose edge the exponential loss is noise.
LOSSES = {
    "exponential": ExponentialLoss(worst=math.inf),
    "quadratic": QuadraticLoss(),
    "log": LogLoss(),
}


def data(p, seed):
    X, y = make_classification(
        ROWS, p, n_informative=2, n_redundant=0, n_clusters_per_class=1, random_state=seed
    )
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2 * (X - low) / (high - low) - 1
    order = np.random.default_rng(seed).permutation(ROWS)
    return X[order], y[order].astype(np.int32)


def excess(loss, X, answers, models):
    problem = Objective(loss, 0.0, SGD["ridge"], 1.0, False)
    ones = np.ones(len(X))
    best = minimize(
        problem.risk,
        np.zeros(X.shape[1]),
        args=(X, answers, ones),
        jac=problem.gradient,
        options={"gtol": 1e-10},
    )
    return [problem.risk(model.coef_, X, answers, ones) - best.fun for model in models]


def classification(p, epsilon, loss, seed):
    X, y = data(p, seed)
    rng = np.random.default_rng(1000 + seed)
    radius, label_noise = np.sqrt(p), lambda_of_epsilon(epsilon / 2, 2)
    sigma = classical_sigma(epsilon / 2, 1e-5, 2 * radius)
    mechanism = GaussianRR((0, 1), label_noise, radius, sigma, epsilon / 2, 1e-5)
    noisy, z = mechanism.release_features(X, rng, simulation=True), mechanism.sample(y, rng)
    models, seconds = [], 0.0
    runs = ((None, X, y, False), (mechanism, noisy, z, False), (mechanism, noisy, z, True))
    for noise, features, labels, average in (*runs, (None, noisy, z, False)):
        start = time.process_time()
        model = IWPClassifier(noise, loss=LOSSES[loss], average=average, **SGD)
        models.append(model.fit(features, labels))
        if noise is not None:
            seconds = time.process_time() - start
    answers = np.eye(2)[y]
    found = excess(LOSSES[loss], X, answers, models)
    return [*found, math.nan, seconds]


def soft(y):
    """Return numbers as soft labels: the quadratic loss is then the squared loss of the number."""
    return np.stack([1 - y, 1 + y], axis=1) / 2


def regression_release(p, epsilon, seed):
    rng = np.random.default_rng(2000 + seed)
    X = rng.uniform(-1, 1, size=(ROWS, p))
    y = np.clip(X @ np.full(p, 1.2 / np.sqrt(p)) + 0.2 * rng.normal(size=ROWS), -1, 1)
    sigma = classical_sigma(epsilon / 2, 1e-5, 2 * np.sqrt(p))
    noisy = X + sigma * rng.normal(size=X.shape)
    z = y + classical_sigma(epsilon / 2, 1e-5, 2.0) * rng.normal(size=ROWS)
    return X, y, noisy, z, sigma


def regression(p, epsilon, seed):
    X, y, noisy, z, sigma = regression_release(p, epsilon, seed)
    models, seconds = [], 0.0
    runs = ((0.0, X, y, False), (sigma, noisy, z, False), (sigma, noisy, z, True))
    for level, features, labels, average in (*runs, (0.0, noisy, z, False)):
        start = time.process_time()
        models.append(IWPRegressor(sigma=level, average=average, **SGD).fit(features, labels))
        if level:
            seconds = time.process_time() - start
    models.append(closed_form(noisy, z, sigma))
    return [*excess(QuadraticLoss(), X, soft(y), models), seconds]


def small_steps(draws):
    """Print the ratio with the step of Theorem 5.5, last iterate and average."""
    print("\n| regression, p = 2, step of the theorem, ε | last | averaged |\n|---|---|---|")
    for epsilon in (2.0, 2.5, 3.0, 4.0, 8.0):
        found = np.array([theorem_steps(epsilon, seed) for seed in range(draws)]).mean(axis=0)
        print(
            f"| {epsilon:g} | {found[0] / found[2]:.4f} | {found[1] / found[2]:.4f} |", flush=True
        )


def theorem_steps(epsilon, seed):
    X, y, noisy, z, sigma = regression_release(2, epsilon, seed)
    own = SGD | {"step": "theorem", "feature_radius": math.sqrt(2)}
    models = [IWPRegressor(sigma=sigma, average=a, **own).fit(noisy, z) for a in (False, True)]
    models.append(IWPRegressor(sigma=0.0, **SGD).fit(noisy, z))
    return excess(QuadraticLoss(), X, soft(y), models)


def closed_form(noisy, z, sigma):
    moments = noisy.T @ noisy / len(noisy) + (SGD["ridge"] - sigma**2) * np.eye(noisy.shape[1])
    theta = np.linalg.solve(moments, noisy.T @ z / len(noisy))
    theta *= min(1.0, SGD["radius"] / np.linalg.norm(theta))
    return SimpleNamespace(coef_=theta)


def row(name, p, epsilon, draws):
    values = np.array(draws)
    real, iwp, average, plain, closed, seconds = values.mean(axis=0)
    exact = "–" if math.isnan(closed) else f"{closed / plain:.4f}"
    return (
        f"| {name} | {p} | {epsilon:g} | {real:.2e} | {iwp:.2e} | {plain:.2e} | {iwp / plain:.4f} "
        f"| {average / plain:.4f} | {exact} | {np.median(seconds):.2f} |"
    )


def reference_pass():
    X, y = data(10, 0)
    start = time.process_time()
    SGDClassifier(max_iter=1, tol=None, shuffle=False).fit(X, y)
    other = time.process_time() - start
    start = time.process_time()
    IWPClassifier(sigma=12.0, loss=LOSSES["exponential"], **SGD).fit(X, y)
    own = time.process_time() - start
    print(
        f"\nOne pass over 10⁶ × 10 rows: {own:.2f} s; scikit-learn's SGDClassifier (row by row, no"
    )
    print(f"correction) {other:.2f} s: ratio {own / other:.1f}.")


def main(draws):
    print(
        "| loss | p | ε | SGD, real data | IWP-SGD | SGD, release | ratio | averaged | closed | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for p, epsilon in ((2, 2.0), (10, 5.0)):
        for loss in LOSSES:
            found = [classification(p, epsilon, loss, seed) for seed in range(draws)]
            print(row(loss, p, epsilon, found), flush=True)
    for p, epsilon in ((2, 2.0), (2, 2.5), (2, 3.0), (2, 4.0), (2, 8.0), (10, 5.0), (10, 10.0)):
        found = [regression(p, epsilon, seed) for seed in range(draws)]
        print(row("regression", p, epsilon, found), flush=True)
    small_steps(draws)
    reference_pass()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
