"""The lower bound of ε from the release alone, on real data released by randomized response.

Run: ``python benchmarks/release_only.py [seeds] [threads]``; reads ../shared/data.
"""

import os
import platform
import sys
import time
from pathlib import Path

THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
os.environ["OMP_NUM_THREADS"] = str(THREADS)

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402

from ldpaudit.audits.interface import AuditContext, Plan  # noqa: E402
from ldpaudit.audits.models import cross_fitted_posterior  # noqa: E402
from ldpaudit.estimators.epsilon.release_only import release_only_evidence  # noqa: E402
from ldpaudit.mechanisms import RandomizedResponse  # noqa: E402
from ldpaudit.release import FeatureTable, Release, ReleasedLabels  # noqa: E402

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
REFERENCE = {"skin": (0.931, 1.892, 3.709), "MNIST ≥ 5": (0.869, 1.754, 3.390)}
EPSILONS = (1.0, 2.0, 4.0)


def skin():
    table = pd.read_parquet(DATA / "skin.parquet")
    truth = (table["label"].to_numpy() == 1).astype(np.int32)
    return table.drop(columns="label").to_numpy(np.float32), truth


def mnist():
    files = np.load(DATA / "mnist.npz")
    images = files["x_train"].reshape(60_000, -1).astype(np.float32)
    points = PCA(30, random_state=0, svd_solver="randomized").fit_transform(images)
    return points.astype(np.float32), (files["y_train"] >= 5).astype(np.int32)


def bounds(points, truth, epsilon, seed):
    """Return the 95 % bound by balls, by scores and by both, and the seconds of each part."""
    rng = np.random.default_rng(seed)
    mechanism = RandomizedResponse.from_epsilon((0, 1), epsilon)
    released = mechanism.sample(truth, rng)
    table = FeatureTable(points, np.zeros((len(points), 0), np.int32), (), points.shape[1])
    release = Release(table, ReleasedLabels(released), (0, 1), (0, 1))
    context = AuditContext(release, mechanism, Plan(seed=seed, threads=THREADS))
    start = time.perf_counter()
    scores = cross_fitted_posterior(context, "released")
    fitted = time.perf_counter() - start
    found = []
    for given, model in ((points, None), (None, scores), (points, scores)):
        start = time.perf_counter()
        evidence = release_only_evidence(
            given, released, 2, context.halves(), rng=rng, scores=model, threads=THREADS
        )
        found.append(evidence.bound(0.05).epsilon)
    return np.array([*found, time.perf_counter() - start, fitted])


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"{platform.machine()}, {THREADS} thread(s), NumPy {np.__version__}, {seeds} seeds\n")
    print("| data | ε | reference | balls | scores | both | share of ε | seconds | model s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, load in (("skin", skin), ("MNIST ≥ 5", mnist)):
        points, truth = load()
        for epsilon, reference in zip(EPSILONS, REFERENCE[name], strict=True):
            runs = np.stack([bounds(points, truth, epsilon, seed) for seed in range(seeds)])
            balls, scores, both, seconds, fitted = runs.mean(axis=0)
            print(
                f"| {name} | {epsilon:g} | {reference} | {balls:.3f} | {scores:.3f} | {both:.3f} "
                f"| {both / epsilon:.3f} | {seconds:.1f} | {fitted:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
