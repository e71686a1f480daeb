"""Lower bounds of ε: how large they are, how often they miss, how fast the odds ratio is.

Run: ``python benchmarks/epsilon_bounds.py [runs]`` (2,000 runs by default, about ten minutes).
"""

import math
import platform
import sys
import time

import numpy as np

from ldpaudit.estimators.epsilon.bounds import accuracy_bound
from ldpaudit.estimators.epsilon.strongest import (
    METHODS,
    design_bounds,
    epsilon_evidence,
    gather_evidence,
)
from ldpaudit.estimators.intervals.odds_ratio import odds_ratio_bound

EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
ASYMMETRIC = np.array([[0.9, 0.1], [0.5, 0.5]])


def randomized_response(k, epsilon):
    weights = np.ones((k, k))
    np.fill_diagonal(weights, math.exp(epsilon))
    return weights / weights.sum(axis=1, keepdims=True)


def epsilon_of(channel):
    return float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())


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
            own = accuracy_bound(right, sizes, 0.05).epsilon
            corrected = accuracy_bound(right, sizes, 0.9 * 0.05).epsilon
            row.append(f"{own:.3f} ({corrected:.3f})")
        print(f"| {n:,} | " + " | ".join(row) + " |")


def settings():
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        for prior in ((0.5, 0.5), (0.9, 0.1)):
            yield f"RR, ε = {epsilon:g}, k = 2, {prior}", randomized_response(2, epsilon), prior
    for k, prior in ((3, (0.6, 0.3, 0.1)), (10, (0.1,) * 10)):
        for epsilon in (1.0, 4.0):
            channel = randomized_response(k, epsilon)
            yield f"RR, ε = {epsilon:g}, k = {k}, {prior[:3]}", channel, prior
    yield "asymmetric, ε = log 5, (.5, .5)", ASYMMETRIC, (0.5, 0.5)
    yield "asymmetric, ε = log 5, (.1, .9)", ASYMMETRIC, (0.1, 0.9)
    yield "constant, ε = 0, (.9, .1)", np.array([[0.8, 0.2], [0.8, 0.2]]), (0.9, 0.1)
    yield (
        "2 labels, 3 outputs, ε = log 2",
        np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]]),
        (0.3, 0.7),
    )


def misses(runs, n=2000, alpha=0.05):
    print(f"\n### Share of {runs:,} runs in which a 95 % bound lies above ε, and mean bound\n")
    print(f"{n:,} rows. A method whose bound is conservative misses less often than 5 %.\n")
    columns = (*METHODS, "strongest", "no claim")
    print("| channel, labels | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name, channel, prior in settings():
        rng = np.random.default_rng(7)
        sizes = np.round(n * np.array(prior)).astype(np.int64)
        design = design_bounds(sizes, channel)
        found = {column: [] for column in columns}
        for run in range(runs):
            counts = np.array(
                [rng.multinomial(s, row) for s, row in zip(sizes, channel, strict=True)]
            )
            evidence = gather_evidence(counts, design, rng)
            for method in METHODS:
                found[method].append(evidence.bound(method, alpha).epsilon)
            found["strongest"].append(evidence.strongest(alpha).epsilon)
            if run % 4 == 0:
                blind = epsilon_evidence(counts, None, rng)
                found["no claim"].append(blind.strongest(alpha).epsilon)
        limit = epsilon_of(channel) + 1e-9
        cells = [f"{np.mean(np.array(v) > limit):.3f} ({np.mean(v):.3f})" for v in found.values()]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def speed():
    print("\n### Time of the exact odds-ratio bound\n\n| n | milliseconds |\n|---|---|")
    for n in (10**3, 10**5, 10**7):
        right = int(0.73 * n / 2)
        table = np.array([[right, n // 2 - right], [n // 2 - right, right]])
        start = time.perf_counter()
        for _ in range(5):
            odds_ratio_bound(table, 0.05)
        print(f"| {n:,} | {(time.perf_counter() - start) * 200:.1f} |")


if __name__ == "__main__":
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    expected_sizes()
    speed()
    misses(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
