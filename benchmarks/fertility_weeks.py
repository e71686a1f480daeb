"""Weeks worked (53 labels): the loss of every mechanism, and the test error of a regressor.

python benchmarks/fertility_weeks.py FOLDER [--seeds 3] [--epsilon .5 1 2 4 8]

FOLDER holds ``fertility.parquet``. One table like Table 2 of Ghazi et al. (2023) and section 4.2 of
Badanidiyuru et al. (2023), on other data: 254,654 women of the 1980 census. Four fifths of the rows
are released and train gradient boosting on the released labels as they are (squared loss); the mean
squared error of its predictions is measured on the true labels of the other fifth. The prior is
private with ε₁ = √(k/n); what is left of ε goes to the labels. Mechanisms that need no prior get
all of ε. Random numbers come from a seeded generator: this is a simulation.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from ldpaudit.learners import ReleaseRegressor
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.bins import DebiasedRR, optimal_bins
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import (
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    prior_budget,
    private_prior,
)
from ldpaudit.mechanisms.response import RandomizedResponseTopK
from ldpaudit.mechanisms.unbiased import optimal_unbiased

WEEKS = LabelRange(0, 52, 1)
K = WEEKS.steps + 1
Floats = np.ndarray[Any, np.dtype[np.float64]]

NO_PRIOR: dict[str, Callable[[float], Any]] = {
    "randomized response": lambda e: RandomizedResponse.from_epsilon(WEEKS.classes, e),
    "discrete Laplace, clipped": lambda e: DiscreteLaplace(WEEKS, e, clipped=True),
    "discrete staircase, clipped": lambda e: DiscreteStaircase(WEEKS, e, clipped=True),
    "exponential": lambda e: Exponential(WEEKS, e),
    "discrete Laplace": lambda e: DiscreteLaplace(WEEKS, e),
    "discrete staircase": lambda e: DiscreteStaircase(WEEKS, e),
    "debiased RR": lambda e: DebiasedRR(WEEKS.classes, e),
}
WITH_PRIOR: dict[str, Callable[[Floats, float], Any]] = {
    "RR with prior": lambda p, e: RandomizedResponseTopK.from_prior(WEEKS.classes, p, e),
    "RR-on-Bins": lambda p, e: optimal_bins(WEEKS.classes, p, e).mechanism,
    "optimal unbiased": lambda p, e: optimal_unbiased(WEEKS.classes, p, e).mechanism,
}
UNBIASED = ("discrete Laplace", "discrete staircase", "debiased RR", "optimal unbiased")


def features_of(table: pd.DataFrame) -> Floats:
    words = ["morekids", "gender1", "gender2", "afam", "hispanic", "other"]
    encoder = make_column_transformer(
        (OneHotEncoder(drop="if_binary", sparse_output=False), words), ("passthrough", ["age"])
    )
    return np.asarray(encoder.fit_transform(table), dtype=np.float64)


def test_error(X: Floats, released: Floats, test: Floats, truth: Floats, seed: int) -> float:
    model = ReleaseRegressor(model="boosting", correction=None, rounds=60, random_state=seed)
    guesses = model.fit(X, released).predict(test)
    return float(np.mean((guesses - truth) ** 2))


def mechanisms(counts: Floats, epsilon: float, rng: np.random.Generator) -> dict[str, Any]:
    spent = prior_budget(epsilon, K, int(counts.sum()))
    prior = private_prior(counts.astype(np.int64), spent, rng)
    made = {name: build(prior, epsilon - spent) for name, build in WITH_PRIOR.items()}
    return made | {name: build(epsilon) for name, build in NO_PRIOR.items()}


def measured(
    X: Floats, work: np.ndarray[Any, Any], epsilons: list[float], seed: int
) -> dict[tuple[str, float], tuple[float, float]]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(work))
    train, test = np.split(order, [int(0.8 * len(work))])
    counts = np.bincount(work[train], minlength=K)
    clean = test_error(X[train], work[train].astype(float), X[test], work[test], seed)
    results = {("no noise", e): (0.0, clean) for e in epsilons}
    for epsilon in epsilons:
        for name, mechanism in mechanisms(counts, epsilon, rng).items():
            released = np.asarray(mechanism.release(work[train], rng), dtype=np.float64)
            loss = float(np.mean((released - work[train]) ** 2))
            error = test_error(X[train], released, X[test], work[test], seed)
            results[name, epsilon] = loss, error
    return results


def show(runs: list[dict[tuple[str, float], tuple[float, float]]], epsilons: list[float]) -> None:
    names = list(dict.fromkeys(name for name, _ in runs[0]))
    for which, title in enumerate(("mean squared error of the labels", "test error")):
        print(f"\n{title}, mean of {len(runs)} splits (standard deviation)\n")
        print("| mechanism | " + " | ".join(f"ε = {e:g}" for e in epsilons) + " |")
        print("|---|" + "---|" * len(epsilons))
        for name in names:
            mark = " (unbiased)" if name in UNBIASED else ""
            cells = [[run[name, e][which] for run in runs] for e in epsilons]
            shown = [f"{np.mean(c):.2f} ({np.std(c, ddof=min(1, len(c) - 1)):.2f})" for c in cells]
            print(f"| {name}{mark} | " + " | ".join(shown) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0, 8.0])
    options = parser.parse_args()
    table = pd.read_parquet(options.folder / "fertility.parquet")
    X, work = features_of(table), table["work"].to_numpy().astype(np.int64)
    runs = [measured(X, work, options.epsilon, seed) for seed in range(options.seeds)]
    show(runs, options.epsilon)


if __name__ == "__main__":
    main()
