"""Weeks worked: tables of Ghazi et al. (2023), figure 5a of Badanidiyuru et al. (2023).

The papers' weeks are of the 1940 census, these of the women of the 1980 census extract. Four fifths
of the rows are released and train boosting on the released labels as they are; the mean squared
error of its predictions is measured on the true labels of the other fifth.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from benchmarks.runner import DATA, Array, Rng, Rows, case, draw, heads, spread, timed
from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR, optimal_bins
from ldpaudit.extras.kinds.mechanisms.unbiased import optimal_unbiased
from ldpaudit.learners import ReleaseRegressor
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, DiscreteStaircase, Exponential, Laplace
from ldpaudit.mechanisms.prior_budget import prior_budget, private_prior
from ldpaudit.mechanisms.response import RandomizedResponseTopK

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
# Of each mechanism what is built from a range and ε; with a prior, from classes, it and ε.
NO_PRIOR: dict[str, Any] = {
    "discrete Laplace": DiscreteLaplace,
    "discrete Laplace, clipped": partial(DiscreteLaplace, clipped=True),
    "discrete staircase": DiscreteStaircase,
    "discrete staircase, clipped": partial(DiscreteStaircase, clipped=True),
    "exponential": Exponential,
    "randomized response": lambda r, e: RandomizedResponse.from_epsilon(r.classes, e),
    "debiased RR": lambda r, e: DebiasedRR(r.classes, e),
}
WITH_PRIOR: dict[str, Any] = {
    "optimal unbiased": lambda c, p, e: optimal_unbiased(c, p, e).mechanism,
    "RR-on-Bins": lambda c, p, e: optimal_bins(c, p, e).mechanism,
    "RR with prior": RandomizedResponseTopK.from_prior,
}
OF_THE_FIGURE = (*list(WITH_PRIOR)[:2], *list(NO_PRIOR)[:4])


def features_and_weeks(data: Path, least: int) -> tuple[Array, Array]:
    """Return the features and the weeks, of who worked at least so many."""
    table = pd.read_parquet(data / "fertility.parquet")
    table = table[table["work"] >= least]
    words = ["morekids", "gender1", "gender2", "afam", "hispanic", "other"]
    X = pd.get_dummies(table[words], columns=words, drop_first=True).assign(age=table["age"])
    return X.to_numpy(float), table["work"].to_numpy().astype(np.int64)


def test_error(X: Array, weeks: Array, mechanism: Any, seed: int) -> tuple[float, float]:
    """Return the mean squared errors of released labels and of boosting; None: labels as is."""
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(weeks)), [int(0.8 * len(weeks))])
    released = weeks[train] if mechanism is None else mechanism.release(weeks[train], rng)
    released = np.asarray(released, dtype=np.float64)
    model = ReleaseRegressor(model="boosting", correction=None, rounds=60, random_state=seed)
    guesses = model.fit(X[train], released).predict(X[test])
    errors = (released - weeks[train]) ** 2, (guesses - weeks[test]) ** 2
    return float(errors[0].mean()), float(errors[1].mean())


def made(names: Any, weeks: Array, least: int, epsilon: float, rng: Rng) -> dict[str, Any]:
    """Return mechanisms for weeks; the prior is private with ε₁ = √(k/n), paid out of ε."""
    known, k = LabelRange(least, 52, 1), 53 - least
    counts = np.bincount(weeks - least, minlength=k)
    spent = prior_budget(epsilon, k, len(weeks))
    prior = private_prior(counts, spent, rng)
    return {
        name: WITH_PRIOR[name](known.classes, prior, epsilon - spent)
        if name in WITH_PRIOR
        else NO_PRIOR[name](known, epsilon)
        for name in names
    }


def curves_of(
    X: Array, weeks: Array, least: int, names: Any, seeds: int, epsilons: Any
) -> dict[str, list[list[tuple[float, float]]]]:
    """Return of each mechanism, for each ε, the errors of all seeds."""
    clean = [test_error(X, weeks, None, seed) for seed in range(seeds)]
    found = {"no noise": [clean] * len(epsilons)} | {name: [] for name in names}
    for epsilon in epsilons:
        mechanisms = [
            made(names, weeks, least, epsilon, np.random.default_rng([seed, 7]))
            for seed in range(seeds)
        ]
        for name in names:
            errors = [test_error(X, weeks, m[name], seed) for seed, m in enumerate(mechanisms)]
            found[name].append(errors)
    return found


@case(seeds=1, epsilons=(1.0,), rows=500, names=("exponential", "RR-on-Bins"))
def fertility_weeks(
    seeds: int = 3,
    epsilons: tuple[float, ...] = EPSILONS,
    names: tuple[str, ...] = (*WITH_PRIOR, *NO_PRIOR),
    rows: int = 0,
    data: Path = DATA,
) -> Rows:
    """Which mechanism should release numeric labels? Weeks worked, 53 labels, zero among them."""
    X, weeks = (part[: rows or None] for part in features_and_weeks(data, 0))
    found = curves_of(X, weeks, 0, names, seeds, epsilons)
    for which, title in enumerate(("Squared error of the labels", "Test error")):
        yield f"{title}, mean of {seeds} splits ± standard deviation"
        yield heads("mechanism", *(f"ε = {epsilon:g}" for epsilon in epsilons))
        for name, errors in found.items():
            yield name, *(spread([pair[which] for pair in some]) for some in errors)


@case(seeds=1, epsilons=(1.0,), rows=500)
def papers_our(
    seeds: int = 3,
    epsilons: tuple[float, ...] = EPSILONS,
    rows: int = 0,
    svg: str = "",
    data: Path = DATA,
) -> Rows:
    """Figure 5a and appendix G.3 of *Optimal unbiased randomizers*: weeks worked, 1 to 52."""
    X, weeks = (part[: rows or None] for part in features_and_weeks(data, 1))
    yield f"{len(weeks):,} rows; variance of the label {np.var(weeks):.2f}."
    yield heads(
        "mechanism, ε = 1",
        *(f"{w}|.2f" for w in ("loss, published", "here", "test, published", "here", "s")),
    )
    prior, classes = np.bincount(weeks - 1, minlength=52) / len(weeks), LabelRange(1, 52, 1).classes
    known = {"RR-on-Bins": (79.71, 172.44, optimal_bins)}
    # Published with meshes of 52, 416 and 1,664 outputs: 1288.21, 1275.22 and 1274.71.
    known["optimal, no mesh"] = (1274.71, 134.43, optimal_unbiased)
    for name, (loss, error, build) in known.items():
        design, seconds = timed(partial(build, classes, prior, 1.0))
        here = test_error(X, weeks, design.mechanism, 0)[1]
        yield name, loss, design.loss, error, here, seconds
    yield f"Test error, {seeds} splits"
    yield heads("mechanism", *(f"ε = {epsilon:g}" for epsilon in epsilons))
    found = curves_of(X, weeks, 1, OF_THE_FIGURE, seeds, epsilons)
    curves = {}
    for name, errors in found.items():
        tests = [[pair[1] for pair in some] for some in errors]
        curves[name] = (epsilons, [np.mean(some) for some in tests])
        yield name, *map(spread, tests)
    ends = (curves["no noise"][1][0] - 2, max(curves["RR-on-Bins"][1]) + 2)
    draw(svg, [("Weeks worked: test error", "ε", "squared error", curves)], y=ends)


AMOUNTS = LabelRange(0, 400, 1)
TABLE_1 = {
    0.05: (60746.98, 11334.84), 0.1: (59038.06, 11325.53), 0.3: (52756.01, 11210.48),
    0.5: (47253.12, 10977.09), 0.8: (40223.13, 10435.43), 1.0: (36226.54, 9976.86),
    1.5: (28170.93, 8636.43), 2.0: (22219.20, 7260.05), 3.0: (14411.77, 4600.24),
    4.0: (9851.53, 2631.36), 6.0: (5270.57, 709.74), 8.0: (3239.22, 176.47),
}  # fmt: skip
TABLE_2 = {
    0.5: (274.11, 179.88, 273.97, 183.28), 1.0: (274.11, 159.49, 273.97, 172.64),
    2.0: (274.11, 107.89, 273.97, 152.03), 4.0: (138.00, 36.43, 145.89, 136.59),
    8.0: (11.58, 2.54, 134.26, 134.35),
}  # fmt: skip


def amounts_prior(deviation: float) -> Array:
    """Return a log-normal amount clipped at 400, with 5 % of the amounts there."""
    centre = np.log(399.5) - deviation * norm.ppf(0.95)
    below = norm.cdf((np.log(np.arange(0.5, 400)) - centre) / deviation)
    return np.diff(np.r_[0.0, below, 1.0])


@case(seeds=1, epsilons=(1.0,), rows=500)
def papers_rldp(
    seeds: int = 3,
    epsilons: tuple[float, ...] = tuple(TABLE_1),
    rows: int = 0,
    data: Path = DATA,
) -> Rows:
    """Tables 1 and 2 of *Regression with label differential privacy*, on other data.

    Table 1 (Criteo revenue clipped at 400): the mechanisms' error on a stand-in prior of 401
    labels, a log-normal amount with the largest variance that such amounts can have, 11,028; in the
    paper RR-on-Bins errs by 11,335 at ε = 0.05. Table 2 (weeks worked): the label's error exactly
    and the test error of boosting, on women who worked at least a week.
    """

    def closeness(deviation: float) -> float:
        prior = amounts_prior(deviation)
        return -float(prior @ (AMOUNTS.values - prior @ AMOUNTS.values) ** 2)

    prior = amounts_prior(minimize_scalar(closeness, bounds=(0.5, 2.0), method="bounded").x)
    spent = prior_budget(1.0, 401, int(0.8 * 1_732_721))
    yield f"Table 1: ε₁ = {spent:.4f} (published .017); mean {prior @ AMOUNTS.values:.1f}"
    pairs = [
        f"{n}{w}|.0f" for n in ("Laplace", "RR-on-Bins") for w in (", published", ", stand-in")
    ]
    yield heads("ε", *pairs, "bins")
    for epsilon in epsilons:
        laplace, bins = TABLE_1[epsilon]
        noise = 2 * Laplace(AMOUNTS, epsilon, clipped=True).expected_loss(prior)
        design: Any = optimal_bins(AMOUNTS.classes, prior, epsilon - spent)
        yield epsilon, laplace, noise, bins, 2 * design.loss, len(design.mechanism.channel.outputs)
    X, weeks = (part[: rows or None] for part in features_and_weeks(data, 1))
    prior, classes = np.bincount(weeks - 1, minlength=52) / len(weeks), tuple(range(1, 53))
    yield f"Table 2: {len(weeks):,} women; variance {np.var(weeks):.2f}; {seeds} splits"
    names, errors = ("RRWithPrior", "RR-on-Bins"), ("error", "test")
    columns = [f"{n} {e}{w}|.2f" for e in errors for n in names for w in (", published", ", here")]
    yield heads("ε", *columns)
    for epsilon in sorted({*epsilons} & {*TABLE_2}):
        known, cells = TABLE_2[epsilon], []
        built = [WITH_PRIOR[n](classes, prior, epsilon) for n in ("RR with prior", "RR-on-Bins")]
        for published, mechanism in zip(known[:2], built, strict=True):
            cells += [published, 2 * mechanism.expected_loss(prior)]
        for published, mechanism in zip(known[2:], built, strict=True):
            tests = [test_error(X, weeks, mechanism, seed)[1] for seed in range(seeds)]
            cells += [published, spread(tests)]
        yield epsilon, *cells
    clean = float(np.mean([test_error(X, weeks, None, seed)[1] for seed in range(seeds)]))
    yield "∞", 0.0, 0.0, 0.0, 0.0, 134.27, clean, 134.27, clean
