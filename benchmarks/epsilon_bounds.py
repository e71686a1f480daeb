"""Lower bounds of ε: how large they are, how often they miss, how fast the odds ratio is.

Run: ``python benchmarks/epsilon_bounds.py [tables]`` (3,000 of each setting by default, about ten
minutes).
"""

import math
import platform
import sys
import time

import numpy as np

from ldpaudit.estimators.epsilon.bounds import accuracy_epsilon, event_epsilon
from ldpaudit.estimators.epsilon.strongest import (
    METHODS,
    design_bounds,
    epsilon_evidence,
    gather_evidence,
)
from ldpaudit.mechanisms import DiscreteLaplace, DiscreteStaircase, LabelRange
from ldpaudit.mechanisms.noise import Exponential
from ldpaudit.mechanisms.unbiased import optimal_unbiased

EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
NO_CLAIM = 20
"""One table in so many is bounded without a claim: each has its own design, which takes long."""


def randomized_response(k, epsilon):
    weights = np.ones((k, k))
    np.fill_diagonal(weights, math.exp(epsilon))
    return weights / weights.sum(axis=1, keepdims=True)


def epsilon_of(channel):
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(np.log(channel.max(axis=0) / channel.min(axis=0))))


def expected_sizes():
    print("\n### Expected 95 % bounds, binary randomized response, equal classes\n")
    print("Each method at its own level; in brackets the strongest with its correction.\n")
    print("| n | ε = " + " | ".join(f"{e:g}" for e in EPSILONS) + " |")
    print("|---|" + "---|" * len(EPSILONS))
    for n in (10**3, 10**4, 10**5, 10**6):
        row = []
        for epsilon in EPSILONS:
            right = round(n / (1 + math.exp(-epsilon)))
            sizes = np.array([n // 2, n // 2])
            own = accuracy_epsilon(right, sizes, 0.05)
            corrected = accuracy_epsilon(right, sizes, 0.9 * 0.05)
            row.append(f"{own:.3f} ({corrected:.3f})")
        print(f"| {n:,} | " + " | ".join(row) + " |")


def zipf(k):
    shares = 1 / np.arange(1, k + 1)
    return shares / shares.sum()


def flat(k):
    return np.full(k, 1 / k)


def few_cells():
    """Yield channels whose ε is carried by few entries."""
    asymmetric = np.array([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6]])
    yield "asymmetric 3 × 3", asymmetric, flat(3), 3000
    yield "the same, 97 % in one class", asymmetric, np.array([0.97, 0.015, 0.015]), 3000
    rare = np.array([[0.5, 0.499, 0.001], [0.49, 0.49, 0.02]])
    yield "a rare output, .001 against .02", rare, flat(2), 3000
    skewed = np.array([[0.95, 0.05], [0.6, 0.4]])
    yield "2 × 2, .95/.60, 99 : 1", skewed, np.array([0.99, 0.01]), 3000
    yield "2 × 2, .95/.60, 30 : 70", skewed, np.array([0.3, 0.7]), 400
    row = np.array([0.4, 0.25, 0.2, 0.11, 0.04])
    circle = np.stack([np.roll(row, shift) for shift in range(4)])
    yield "4 labels × 5 outputs", circle, np.array([0.4, 0.3, 0.2, 0.1]), 3000
    random = np.random.default_rng(1).uniform(1, 5, (30, 30))
    yield "random 30 × 30", random / random.sum(axis=1, keepdims=True), flat(30), 20_000
    low, high = np.full(4, 0.001), np.full(4, 0.001 * math.exp(2))
    small = np.array([[0.6, 0.396, *low], [0.5, 0.5 - high.sum(), *high]])
    yield "outputs of .1 %", small, flat(2), 5000
    small = np.array([[0.6, 0.399, 0.001], [0.5, 0.4, 0.1]])
    small[1, 1:] = 0.5 - small[0, 2] * math.exp(2), small[0, 2] * math.exp(2)
    yield "one output of .1 %", small, flat(2), 5000
    yield "2 labels, 3 outputs", np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]]), [0.3, 0.7], 2000
    yield "constant", np.array([[0.8, 0.2], [0.8, 0.2]]), [0.9, 0.1], 2000


def settings():
    for k in (2, 30):
        for epsilon in (1.0, 3.0):
            for n in (600, 3000, 5000, 20_000):
                yield f"RR, k = {k}", randomized_response(k, epsilon), zipf(k), n
    yield "RR, k = 2, equal", randomized_response(2, 1.0), flat(2), 1000
    yield "RR, k = 10, equal", randomized_response(10, 4.0), flat(10), 2000
    yield from few_cells()
    grid = LabelRange(0.0, 10.0, 1.0)
    for mechanism in (
        DiscreteLaplace(grid, 2.0, True),
        DiscreteStaircase(grid, 2.0, True),
        Exponential(grid, 2.0),
        optimal_unbiased(tuple(range(11)), flat(11), 2.0).mechanism,
    ):
        yield type(mechanism).__name__, mechanism.channel.matrix, flat(11), 5000


def misses(tables, alpha=0.05):
    print(f"\n### Share of {tables:,} tables in which a 95 % bound lies above ε, and mean bound\n")
    columns = (*METHODS, "strongest", "no claim")
    print("| channel | ε | n | primary | " + " | ".join(columns) + " |")
    print("|---|--:|--:|---|" + "--:|" * len(columns))
    for name, channel, shares, n in settings():
        rng = np.random.default_rng(7)
        sizes = np.round(n * np.asarray(shares)).astype(np.int64)
        design = design_bounds(sizes, channel)
        found = {column: [] for column in columns}
        for table in range(tables):
            counts = np.array(
                [rng.multinomial(s, row) for s, row in zip(sizes, channel, strict=True)]
            )
            evidence = gather_evidence(counts, design, rng)
            for method in METHODS:
                found[method].append(evidence.by_method(method, alpha).epsilon)
            found["strongest"].append(evidence.bound(alpha).epsilon)
            if table % NO_CLAIM == 0:
                blind = epsilon_evidence(counts, None, rng)
                found["no claim"].append(blind.bound(alpha).epsilon)
        limit = epsilon_of(channel)
        cells = [
            f"{np.mean(np.array(v) > limit + 1e-9):.3f} ({np.mean(v):.3f})" for v in found.values()
        ]
        start = f"| {name} | {limit:.2f} | {n:,} | {design.primary} | "
        print(start + " | ".join(cells) + " |", flush=True)


def speed():
    print("\n### Time of the exact odds-ratio bound\n\n| n | milliseconds |\n|---|---|")
    for n in (10**3, 10**5, 10**7):
        right = int(0.73 * n / 2)
        table = np.array([[right, n // 2 - right], [n // 2 - right, right]])
        start = time.perf_counter()
        for _ in range(5):
            event_epsilon(table, 0.0, 0.05)
        print(f"| {n:,} | {(time.perf_counter() - start) * 200:.1f} |")


if __name__ == "__main__":
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    expected_sizes()
    speed()
    misses(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
