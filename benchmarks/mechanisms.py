"""Sampling speed of the mechanisms, and RR with prior on weeks worked.

Run: python benchmarks/mechanisms.py [path to fertility.parquet]
"""

import os
import platform
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, DiscreteStaircase, Exponential
from ldpaudit.mechanisms.response import RandomizedResponseTopK

N = 10_000_000
PAPER = {0.5: 274.11, 1.0: 274.11, 2.0: 274.11, 4.0: 138.00, 8.0: 11.58}


def speed(mechanism, k: int, n: int, rng) -> float:
    labels = (np.arange(n) % k).astype(np.int32)
    mechanism.sample(labels[:1000], rng)
    start = time.perf_counter()
    mechanism.sample(labels, rng)
    return n / (time.perf_counter() - start) / 1e6


def speeds() -> None:
    grid = LabelRange(0, 52, 1)
    cases = [
        (RandomizedResponse.from_epsilon(tuple(range(k)), 1.0), k, N) for k in (2, 10, 53, 401)
    ]
    cases += [
        (RandomizedResponseTopK(tuple(range(53)), tuple(range(20)), 1.0), 53, N),
        (Exponential(grid, 1.0), 53, N),
        (DiscreteLaplace(grid, 1.0), 53, N // 10),
        (DiscreteStaircase(grid, 1.0), 53, N // 10),
    ]
    print("| mechanism, labels | os.urandom, million labels/s | NumPy PCG64, million labels/s |")
    print("|---|---|---|")
    for mechanism, k, n in cases:
        system = speed(mechanism, k, n, None)
        generator = speed(mechanism, k, n, np.random.default_rng(0))
        print(f"| {mechanism.name}, {k} | {system:.1f} | {generator:.1f} |")


def weeks(path: Path) -> None:
    import pyarrow.parquet as pq

    worked = pq.read_table(path, columns=["work"])["work"].to_numpy()
    print("\n| ε | paper, Census (weeks > 0) | fertility, weeks > 0 | fertility, all |")
    print("|---|---|---|---|")
    for epsilon, published in PAPER.items():
        values = []
        for labels in (worked[worked > 0], worked):
            classes, counts = np.unique(labels, return_counts=True)
            prior = counts / counts.sum()
            mechanism = RandomizedResponseTopK.from_prior(tuple(classes.tolist()), prior, epsilon)
            error = 2 * mechanism.expected_loss(prior, "squared")
            values.append(f"{error:.2f} ({len(mechanism.kept)} kept)")
        print(f"| {epsilon:g} | {published:.2f} | {' | '.join(values)} |")


if __name__ == "__main__":
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ")
    print(f"NumPy {np.__version__}, one thread\n")
    speeds()
    if len(sys.argv) > 1:
        weeks(Path(sys.argv[1]))
