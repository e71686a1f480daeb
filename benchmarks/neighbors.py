"""Neighbour label counts against faiss.IndexIVFFlat: queries per second at the same error.

python benchmarks/neighbors.py [--rows 500000] [--threads 2] [--repeats 5]
python benchmarks/neighbors.py --large 20000000 [--memory 4GiB] [--threads 2]

An 18-dimensional Gaussian mixture of two classes whose means differ by 0.25 in each coordinate,
P(Y = 1) = 0.457, so that the true η(x) is known. One half of the rows is the index, the other asks.
The figure of merit is the root mean square of η̂(x) − η(x): an approximate search costs smoothness,
not validity. It is taken over the same first 10,000 queries for every search. Both searches
alternate in one run; other work on the machine slows both. scikit-learn's exact search answers few
queries, for its queries per second.

With ``--large`` half of so many rows are the index, in a file, and 68,600 of the others ask, as
``ldpaudit run`` does by default (a pilot included) for the k that it chooses.
"""

import argparse
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import faiss
import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from ldpaudit.estimators.neighbors.counts import count_labels
from ldpaudit.estimators.neighbors.means import Means
from ldpaudit.estimators.neighbors.metric import score_space
from ldpaudit.estimators.neighbors.sizes import default_neighbors
from ldpaudit.running.memory import size_of
from ldpaudit.running.scratch import Scratch, resting

DIMENSIONS, WEIGHT, PRIOR, K = 18, 0.25, 0.457, 1000
COMPARED = 10_000
ASKING = 68_600
GRID = [(1024, 16), (1024, 32), (1024, 64), (2048, 32), (2048, 64), (4096, 64), (4096, 128)]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Rows of the mixture, their labels and the true probability of label 1."""

    points: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int32]
    eta: Floats

    def head(self, m: int) -> "Sample":
        """The first m rows."""
        return Sample(self.points[:m], self.labels[:m], self.eta[:m])


@dataclass(frozen=True)
class Timing:
    """One search: its estimate's error on the first queries, and its queries per second."""

    name: str
    rmse: float
    speed: float


def mixture(n: int, rng: np.random.Generator) -> Sample:
    labels = (rng.random(n) < PRIOR).astype(np.int32)
    points = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    points += (WEIGHT * (labels[:, None] - 0.5)).astype(np.float32)
    log_odds = WEIGHT * points.sum(axis=1, dtype=np.float64) + np.log(PRIOR / (1 - PRIOR))
    return Sample(points, labels, 1 / (1 + np.exp(-log_odds)))


def large(rows: int, memory: str, threads: int) -> None:
    """Count in an index that lies in a file, and print time and memory as a row of a table."""
    rng, n = np.random.default_rng(20261120), rows // 2
    with Scratch() as scratch:
        points, labels = scratch.array((n, DIMENSIONS), np.float32), np.empty(n, np.int32)
        for start in range(0, n, 500_000):
            part = mixture(min(500_000, n - start), rng)
            points[start : start + 500_000], labels[start : start + 500_000] = (
                part.points,
                part.labels,
            )
            resting(points)
        queries, k = mixture(ASKING, rng), default_neighbors(n, DIMENSIONS)
        means = Means(threads, scratch=scratch, memory=size_of(memory))
        wall, work = time.perf_counter(), time.process_time()
        found = count_labels(points, labels, queries.points, k, 2, means=means)
        wall, work = time.perf_counter() - wall, time.process_time() - work
    eta = found.counts[:, 1] / found.totals
    rmse = float(np.sqrt(np.mean((eta - queries.eta) ** 2)))
    print(
        "| rows | index | k | RMSE of η̂ | wall s | processor s | peak memory |\n" + "|---" * 7 + "|"
    )
    print(f"| {rows:,} | {n:,} | {k:,} | {rmse:.4f} | {wall:.0f} | {work:.0f} | {peak()} |")


def timed(name: str, queries: Sample, estimate: Callable[[Sample], Floats]) -> Timing:
    start = time.perf_counter()
    eta = estimate(queries)
    seconds = time.perf_counter() - start
    rmse = float(np.sqrt(np.mean((eta - queries.eta)[:COMPARED] ** 2)))
    return Timing(name, rmse, len(eta) / seconds)


def ours(index: Sample, threads: int) -> Callable[[Sample], Floats]:
    def estimate(queries: Sample) -> Floats:
        found = count_labels(index.points, index.labels, queries.points, K, 2, means=Means(threads))
        return np.asarray(found.counts[:, 1] / found.totals, dtype=np.float64)

    return estimate


def exact(index: Sample) -> Callable[[Sample], Floats]:
    flat = faiss.IndexFlatL2(DIMENSIONS)
    flat.add(index.points)
    return lambda queries: means(flat, index, queries)


def by_scikit_learn(index: Sample, threads: int) -> Callable[[Sample], Floats]:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=K, n_jobs=threads, algorithm="brute").fit(index.points)
    return lambda queries: np.asarray(
        index.labels[search.kneighbors(queries.points, return_distance=False)].mean(axis=1)
    )


def inverted_file(index: Sample, nlist: int) -> faiss.IndexIVFFlat:
    file = faiss.IndexIVFFlat(faiss.IndexFlatL2(DIMENSIONS), DIMENSIONS, nlist)
    file.train(index.points[: 48 * nlist])
    file.add(index.points)
    return file


def probed(file: faiss.IndexIVFFlat, nprobe: int, index: Sample) -> Callable[[Sample], Floats]:
    def estimate(queries: Sample) -> Floats:
        file.nprobe = nprobe
        return means(file, index, queries)

    return estimate


def means(search: faiss.Index, index: Sample, queries: Sample) -> Floats:
    """The mean label of each query's k neighbours, in batches that bound the neighbour lists."""
    found = np.empty(len(queries.points))
    for start in range(0, len(found), 20_000):
        _, near = search.search(queries.points[start : start + 20_000], K)
        labels = np.where(near >= 0, index.labels[near], 0).sum(axis=1)
        found[start : start + 20_000] = labels / (near >= 0).sum(axis=1)
    return found


def learned(index: Sample, queries: Sample, fitting: Sample, threads: int) -> Timing:
    """The learned metric: the log-odds of a logistic regression on rows of neither side."""
    model = LogisticRegression().fit(fitting.points, fitting.labels)
    scored = Sample(score_space(model.predict_proba(index.points)), index.labels, index.eta)
    asked = score_space(model.predict_proba(queries.points))
    name = f"learned metric ({len(fitting.labels):,} fitting rows)"
    return timed(name, Sample(asked, queries.labels, queries.eta), ours(scored, threads))


def alternating(
    ways: dict[str, Callable[[Sample], Floats]], queries: dict[str, Sample], repeats: int
) -> dict[str, list[Timing]]:
    runs: dict[str, list[Timing]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, estimate in ways.items():
            runs[name].append(timed(name, queries[name], estimate))
    return runs


def matched(grid: list[tuple[int, int, Timing]], rmse: float) -> tuple[int, int, Timing]:
    """The fastest inverted file whose error is at most 1 % above ``rmse``."""
    good = [entry for entry in grid if entry[2].rmse <= 1.01 * rmse]
    return max(good or grid, key=lambda entry: entry[2].speed if good else -entry[2].rmse)


def row(timing: Timing) -> None:
    print(f"| {timing.name} | {timing.rmse:.4f} | {timing.speed:,.0f} |", flush=True)


def peak() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", type=int)
    parser.add_argument("--memory", default="4GiB")
    options = parser.parse_args()
    if options.large:
        large(options.large, options.memory, options.threads)
        return
    faiss.omp_set_num_threads(options.threads)
    rng = np.random.default_rng(20261120)
    index, queries, fitting = (mixture(n, rng) for n in (options.rows, options.rows, 100_000))
    few = queries.head(COMPARED)
    print(f"{platform.machine()}, {options.threads} threads, NumPy {np.__version__}, ", end="")
    print(f"faiss {faiss.__version__}; {options.rows:,} index rows × {DIMENSIONS}, k = {K}\n")
    print("| search | RMSE of η̂ | queries/s |\n|---|---|---|")
    ours_all = timed(f"ldpaudit, all {options.rows:,} rows", queries, ours(index, options.threads))
    row(ours_all)
    memory = peak()
    row(learned(index, queries, fitting, options.threads))
    row(timed("exact (IndexFlatL2), 2,000 rows", few.head(2000), exact(index)))
    files = {nlist: inverted_file(index, nlist) for nlist in sorted({n for n, _ in GRID})}
    grid = []
    for nlist, nprobe in GRID:
        name = f"IVF nlist {nlist}, nprobe {nprobe}, {len(few.eta):,} rows"
        grid.append((nlist, nprobe, timed(name, few, probed(files[nlist], nprobe, index))))
        row(grid[-1][2])
    nlist, nprobe, _ = matched(grid, ours_all.rmse)
    ways = {
        "ldpaudit": ours(index, options.threads),
        f"IVF nlist {nlist}, nprobe {nprobe}": probed(files[nlist], nprobe, index),
        "scikit-learn, exact": by_scikit_learn(index, options.threads),
    }
    asked = (queries.head(options.rows // 5), few, few.head(500))
    sizes = dict(zip(ways, asked, strict=True))
    runs = alternating(ways, sizes, options.repeats)
    print(
        f"\nAlternating, {options.repeats} times, medians (ldpaudit builds its cells each time):\n"
    )
    print("| search | RMSE of η̂ | queries/s |\n|---|---|---|")
    for name, timings in runs.items():
        speed = statistics.median(t.speed for t in timings)
        row(Timing(f"{name}, {len(sizes[name].eta):,} rows", timings[0].rmse, speed))
    mine, *others = runs.items()
    for name, timings in others:
        ratios = [a.speed / b.speed for a, b in zip(mine[1], timings, strict=True)]
        print(f"\nldpaudit / {name}: {statistics.median(ratios):.1f}×", end=" ")
        print(f"(from {min(ratios):.1f} to {max(ratios):.1f})")
    print(f"Peak memory of the process: {memory} after ldpaudit on all rows, {peak()} at the end.")


if __name__ == "__main__":
    main()
