"""Figure 5a and appendix G.3 of Badanidiyuru et al. (2023), *Optimal unbiased randomizers*.

Weeks worked, 1 to 52: the paper's are of the 1940 census, these of the women of the 1980 census
extract who worked at least a week. Four fifths are released and train boosting on the labels as
they are; the mean squared error on the other fifth. The prior is private, ε₁ = √(k/n) out of ε.

Usage: python benchmarks/papers/our_figure_5.py FOLDER [--seeds 3] [--svg FILE]
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from picture import Line, Panel, save
from weeks import features_and_weeks, test_error

from ldpaudit.mechanisms.bins import optimal_bins
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import (
    DiscreteLaplace,
    DiscreteStaircase,
    prior_budget,
    private_prior,
)
from ldpaudit.mechanisms.unbiased import optimal_unbiased

WEEKS = LabelRange(1, 52, 1)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
PUBLISHED = {"RR-on-Bins": (79.71, 172.44), "mesh of 52": (1288.21, 134.44),
             "mesh of 416": (1275.22, 134.43), "mesh of 1664": (1274.71, 134.43)}  # fmt: skip


def mechanisms(counts: Any, epsilon: float, rng: np.random.Generator) -> dict[str, Any]:
    spent = prior_budget(epsilon, 52, int(counts.sum()))
    prior, left = private_prior(counts, spent, rng), epsilon - spent
    return {
        "optimal unbiased": optimal_unbiased(WEEKS.classes, prior, left).mechanism,
        "RR-on-Bins": optimal_bins(WEEKS.classes, prior, left).mechanism,
        "discrete Laplace": DiscreteLaplace(WEEKS, epsilon),
        "discrete Laplace, clipped": DiscreteLaplace(WEEKS, epsilon, clipped=True),
        "discrete staircase": DiscreteStaircase(WEEKS, epsilon),
        "discrete staircase, clipped": DiscreteStaircase(WEEKS, epsilon, clipped=True),
    }


def figure(X: Any, weeks: Any, seeds: int) -> dict[str, Any]:
    counts = np.bincount(weeks - 1, minlength=52)
    clean = np.mean([test_error(X, weeks, None, seed) for seed in range(seeds)])
    found: dict[str, list[list[float]]] = {}
    for epsilon in EPSILONS:
        for seed in range(seeds):
            made = mechanisms(counts, epsilon, np.random.default_rng([seed, 7]))
            for name, mechanism in made.items():
                found.setdefault(name, [[] for _ in EPSILONS])
                error = test_error(X, weeks, mechanism, seed)
                found[name][EPSILONS.index(epsilon)].append(error)
    print(f"| test error, {seeds} splits | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
    print("|---|" + "---:|" * len(EPSILONS))
    for name, rows in found.items():
        cells = [f"{np.mean(errors):.2f} ± {np.std(errors):.2f}" for errors in rows]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("| no noise | " + f"{clean:.2f} | " * len(EPSILONS), flush=True)
    return {"no noise": [clean] * len(EPSILONS)} | {
        name: [float(np.mean(errors)) for errors in rows] for name, rows in found.items()
    }


def complexity(weeks: Any, X: Any) -> None:
    prior = np.bincount(weeks - 1, minlength=52) / len(weeks)
    print("\n| mechanism, ε = 1 | loss, published | here | test, published | here | s |")
    print("|---|---:|---:|---:|---:|---:|")

    def shown(name: str, design: Any, seconds: float) -> None:
        known = PUBLISHED.get(name)
        cells = ("–", "–") if known is None else (f"{known[0]:.2f}", f"{known[1]:.2f}")
        error = test_error(X, weeks, design.mechanism, 0)
        print(f"| {name} | {cells[0]} | {design.loss:.2f} | {cells[1]} | {error:.2f} "
              f"| {seconds:.2f} |", flush=True)  # fmt: skip

    def timed(build: Any) -> tuple[Any, float]:
        start = time.process_time()
        design = build()
        return design, time.process_time() - start

    shown("RR-on-Bins", *timed(lambda: optimal_bins(WEEKS.classes, prior, 1.0)))
    shown("optimal, no mesh", *timed(lambda: optimal_unbiased(WEEKS.classes, prior, 1.0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    X, weeks = features_and_weeks(options.folder, worked=True)
    print(f"{len(weeks)} rows; variance of the label {np.var(weeks):.2f}.\n")
    complexity(weeks, X)
    curves = figure(X, weeks, options.seeds)
    if options.svg is not None:
        lines = [Line(name, EPSILONS, errors) for name, errors in curves.items()]
        ends = (curves["no noise"][0] - 2, max(curves["RR-on-Bins"]) + 2)
        save(options.svg, [Panel("Weeks worked: test error", "ε", "squared error", lines, ends)])


if __name__ == "__main__":
    main()
