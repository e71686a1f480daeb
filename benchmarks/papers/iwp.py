"""Curves of Dufraiche et al., *Inverse Weierstrass private SGD*, with Adult for ACSIncome."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from benchmarks.runner import DATA, Array, Rng, Rows, case, draw, heads
from ldpaudit.extras.kinds.mechanisms.gaussian import GaussianRR
from ldpaudit.extras.learn.iwp_losses import ExponentialLoss, LogLoss
from ldpaudit.learners import IWPClassifier
from ldpaudit.mechanisms.response import lambda_of_epsilon

# The ridge keeps the parameters far inside the ball, at whose edge the exponential loss is noise.
LOSSES: dict[str, Any] = {"exponential": ExponentialLoss(worst=math.inf), "log": LogLoss()}

# Of each figure the number of columns, the loss, ε, and how the parameters are learnt. The balls'
# radii are not published.
SYNTHETIC = {"ridge": 5.0, "batch_size": 128, "step": 1e-4, "radius": 0.5}
ADULT = {"ridge": 10.0, "batch_size": 50, "step": 2e-5, "radius": 0.35}
FIGURES: dict[str, tuple[int, str, float, dict[str, Any]]] = {
    "1, p = 2": (2, "exponential", 2.0, SYNTHETIC),
    "1, p = 10": (10, "exponential", 5.0, SYNTHETIC),
    "5, p = 2": (2, "log", 2.0, SYNTHETIC),
    "5, p = 10": (10, "log", 5.0, SYNTHETIC),
    "2 and 4, Adult": (3, "exponential", 2.0, ADULT),
    "6 and 7, Adult": (3, "log", 2.0, ADULT),
}
WAYS = ("SGD, real data", "SGD, noisy data", "IWP-SGD")


def classified(rows: int, p: int, seed: int) -> tuple[Array, Array]:
    """Return the paper's synthetic rows, scaled to [-1, 1]^p, in random order, and labels."""
    shape = {"n_informative": 2, "n_redundant": 0, "n_clusters_per_class": 1}
    X, y = make_classification(rows, p, random_state=seed, **shape)
    low, high = X.min(axis=0), X.max(axis=0)
    order = np.random.default_rng(seed).permutation(rows)
    return (2 * (X - low) / (high - low) - 1)[order], y[order].astype(np.int32)


def with_noise(X: Array, y: Array, epsilon: float, rng: Rng) -> tuple[Any, Array, Array]:
    """Release features (classical σ) and labels, half of ε for each."""
    half, radius = epsilon / 2, math.sqrt(X.shape[1])
    # Dwork and Roth (2014), Theorem A.1; Dufraiche et al., Proposition 2.2.
    sigma = 2 * radius * math.sqrt(2 * math.log(1.25 / 1e-5)) / half
    mechanism = GaussianRR((0, 1), lambda_of_epsilon(half, 2), radius, sigma, half, 1e-5)
    return mechanism, mechanism.release_features(X, rng, simulation=True), mechanism.sample(y, rng)


def adult(data: Path) -> tuple[Array, Array]:
    """Return age, education and hours, each scaled to [-1, 1], and whether the income is high."""
    table = pd.read_parquet(data / "adult.parquet")
    X = table[["age", "education_num", "hours_per_week"]].to_numpy(dtype=float)
    X = 2 * (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)) - 1
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], (table["income"] == ">50K").to_numpy().astype(np.int32)[order]


def draws_of(
    figure: str, draws: int, rows: int, data: Path
) -> Iterator[tuple[Array, Array, Array, Array, Any, Array, Array]]:
    """Yield rows for learning, rows for testing, and the release of the former."""
    p, _, epsilon, _ = FIGURES[figure]
    for seed in range(draws):
        rng = np.random.default_rng([p, seed])
        if p == 3:
            # A fifth is the test set; the others are drawn with replacement.
            whole, labels = adult(data)
            held = len(whole) // 5
            some = rng.integers(held, len(whole), rows or 535_087)
            X, y, test, truth = whole[some], labels[some], whole[:held], labels[:held]
        else:
            many = rows or 1_000_000
            X, y = classified(many + 20_000, p, seed)
            X, y, test, truth = X[:many], y[:many], X[many:], y[many:]
        yield X, y, test, truth, *with_noise(X, y, epsilon, rng)


def path_of(noise: Any, X: Array, y: Array, loss: str, stops: Array, settings: Any) -> Array:
    """Return θ after each of some numbers of rows, shape (points, p)."""
    model = IWPClassifier(noise, loss=LOSSES[loss], fit_intercept=False, shuffle=False, **settings)
    thetas = []
    for start, stop in zip(np.r_[0, stops[:-1]], stops, strict=True):
        model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        thetas.append(model.theta_.copy())
    return np.array(thetas)


@case(figures=("1, p = 2",), draws=2, rows=4000)
def papers_iwp(
    figures: tuple[str, ...] = tuple(FIGURES),
    draws: int = 100,
    rows: int = 0,
    svg: str = "",
    data: Path = DATA,
) -> Rows:
    """Figures 1 to 7 of *Inverse Weierstrass private SGD*: test risk over one pass.

    Half of ε goes to the features (classical σ), half to the label, δ = 1e-5; batches, steps and ℓ2
    constants as published, new data and noise in each draw. Gap left: how much of the distance
    between SGD on noisy and on real data IWP-SGD leaves. With ``--svg`` Figure 3 is drawn too, the
    bias of the log loss's series for K = 1, 2, 3.
    """
    yield heads("figure", "loss", "draws", *WAYS, "gap left|.3f")
    panels = []
    for figure in figures:
        _, loss, _, settings = FIGURES[figure]
        found, thetas = [], []
        for X, y, test, truth, mechanism, noisy, z in draws_of(figure, draws, rows, data):
            batch = settings["batch_size"]
            stops = np.unique(np.geomspace(20, len(X) // batch, 24).astype(int)) * batch
            stops[-1] = len(X)
            runs: Any = ((None, X, y), (None, noisy, z), (mechanism, noisy, z))
            paths = [path_of(a, b, c, loss, stops, settings) for a, b, c in runs]
            thetas.append(paths)
            found.append([scores(path, test, truth, loss) for path in paths])
        risks, right = np.array(found).transpose(2, 0, 1, 3)
        curves = {f"Figure {figure}": ("test risk", risks.mean(axis=0))}
        mean, error = (f(risks[:, :, -1]) for f in (_mean, _error))
        cells = [f"{m:.5f} ± {e:.5f}" for m, e in zip(mean, error, strict=True)]
        yield figure, loss, draws, *cells, (mean[2] - mean[0]) / (mean[1] - mean[0])
        if "Adult" in figure:
            models = [scores(path, test, truth, loss)[0] for path in np.mean(thetas, axis=0)]
            accuracy = right.mean(axis=0)
            curves[f"Figure {figure}: mean model"] = ("test risk", np.array(models))
            curves[f"Figure {figure}: accuracy"] = ("accuracy", accuracy)
            ends = [float(model[-1]) for model in models]
            gap = (ends[2] - ends[0]) / (ends[1] - ends[0])
            yield "… mean model", "", "", *(f"{end:.5f}" for end in ends), gap
            yield "… accuracy", "", "", *(f"{100 * way[-1]:.2f} %" for way in accuracy), None
        for title, (words, values) in curves.items():
            lines = {way: (stops // batch, curve) for way, curve in zip(WAYS, values, strict=True)}
            panels.append((title, "batches", words, lines))
    if svg:
        times = np.geomspace(0.02, 25, 30)
        series = {
            f"K = {k}": (times, [LOSSES["log"].bias(2 * t, 1.0, k) for t in times])
            for k in (1, 2, 3)
        }
        panels.append(("Figure 3: bias of the log loss's series", "t = σ²‖θ‖²/2", "bias", series))
    draw(svg, panels, columns=3)


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(axis=0))


def _error(values: Array) -> Array:
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def scores(thetas: Array, X: Array, y: Array, loss: str) -> tuple[Array, Array]:
    """Return test risk and accuracy of each θ, both of shape (points,)."""
    margins = (2 * y - 1)[:, None] * (X @ thetas.T)
    return LOSSES[loss].derivative(margins, 0).mean(axis=0), (margins > 0).mean(axis=0)
