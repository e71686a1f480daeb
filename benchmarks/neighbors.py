"""Neighbour label counts against faiss.IndexIVFFlat: seconds and error for the same queries.

    python benchmarks/neighbors.py [--rows 250000 500000 2250000] [--ivf]

An 18-dimensional Gaussian mixture of two classes whose means differ by 0.25 in each coordinate,
P(Y = 1) = 0.457, so that the true η(x) is known. 20,000 queries look among so many other rows for
the k that ``ldpaudit run`` takes by default. The figure of merit is the root mean square of
η̂(x) − η(x): an approximate search costs smoothness, not validity. Processor seconds of one thread,
cells and training included.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from ldpaudit.estimators.neighbors import (
    count_labels,
    default_neighbors,
    neighbor_search,
)

DIMENSIONS, WEIGHT, PRIOR, ASKING = 18, 0.25, 0.457, 20_000
PROBES = (64, 128)

Floats = npt.NDArray[np.float64]
Points = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]


def mixture(n: int, rng: np.random.Generator) -> tuple[Points, Labels, Floats]:
    """Rows, labels and the true probability of label 1."""
    labels = (rng.random(n) < PRIOR).astype(np.int32)
    points = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    points += (WEIGHT * (labels[:, None] - 0.5)).astype(np.float32)
    log_odds = WEIGHT * points.sum(axis=1, dtype=np.float64) + np.log(PRIOR / (1 - PRIOR))
    return points, labels, 1 / (1 + np.exp(-log_odds))


def ours(index: Points, labels: Labels, queries: Points, k: int) -> Floats:
    counts = count_labels(neighbor_search(index, labels, k, 2, len(queries)), queries)
    return np.asarray(counts[:, 1] / counts.sum(axis=1))


def inverted_file(index: Points, labels: Labels, queries: Points, k: int, probes: int) -> Floats:
    cells = round(4 * np.sqrt(len(index)))
    file = faiss.IndexIVFFlat(faiss.IndexFlatL2(DIMENSIONS), DIMENSIONS, cells)
    file.train(index[: 48 * cells])
    file.add(index)
    file.nprobe = probes
    found = np.empty(len(queries))
    for start in range(0, len(found), 2_000):
        near = file.search(queries[start : start + 2_000], k)[1]
        sums = np.where(near >= 0, labels[near], 0).sum(axis=1)
        found[start : start + 2_000] = sums / (near >= 0).sum(axis=1)
    return found


def row(name: str, k: int, truth: Floats, estimate: Callable[[], Floats]) -> None:
    start = time.process_time()
    found = estimate()
    seconds = time.process_time() - start
    rmse = float(np.sqrt(np.mean((found - truth) ** 2)))
    print(f"| {name} | {k:,} | {rmse:.4f} | {seconds:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 500_000, 2_250_000])
    parser.add_argument(
        "--ivf", action="store_true", help="also faiss' inverted files, much slower"
    )
    options = parser.parse_args()
    print("| search | k | RMSE of η̂ | processor s |\n" + "|---" * 4 + "|")
    faiss.omp_set_num_threads(1)
    with threadpool_limits(limits=1):
        for rows in options.rows:
            rng = np.random.default_rng(20261120)
            index, labels, _ = mixture(rows, rng)
            queries, _, eta = mixture(ASKING, rng)
            k, asked = default_neighbors(rows, DIMENSIONS), (index, labels, queries)
            row(f"ldpaudit, {rows:,} rows", k, eta, partial(ours, *asked, k))
            for probes in PROBES if options.ivf else ():
                name = f"IVF, nprobe {probes}, {rows:,} rows"
                row(name, k, eta, partial(inverted_file, *asked, k, probes))


if __name__ == "__main__":
    main()
