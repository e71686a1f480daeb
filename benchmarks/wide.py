"""Wide and sparse tables: processor seconds and memory of whole audits, one process each.

    python benchmarks/wide.py [--cases wide,middle,columns,refused,sparse]

Processor seconds (user and system) are given, which other work on the machine disturbs less than
the time that passes; with one thread on an idle machine the two are about equal. Tables are made
anew in a temporary folder: independent normal columns, of which a few tell the label, and released
labels by randomized response with ε = 1 from another random stream.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

EPSILON = 1.0
CLAIM = ["--mechanism", "randomized-response", "--epsilon", str(EPSILON)]
AUDIT = [*CLAIM, "--exit-zero", "--threads", "1", "--quiet"]


def released(truth: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """Return labels by randomized response, from a stream of their own."""
    rng = np.random.default_rng([seed, 1])
    return np.where(rng.random(len(truth)) < 1 / (1 + np.exp(-EPSILON)), truth, 1 - truth)


def numbers(rows: int, columns: int, seed: int = 0) -> pa.Table:
    """Return a table in which five columns tell the label, two of them by their product."""
    rng = np.random.default_rng([seed, 0])
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    signal = x[:, :3].sum(axis=1) + x[:, 3] * x[:, 4]
    truth = (signal + 0.7 * rng.logistic(size=rows) > 0).astype(np.int64)
    names = [f"f{i}" for i in range(columns)]
    arrays = [pa.array(released(truth, seed)), pa.array(truth), *map(pa.array, x.T)]
    return pa.table(arrays, ["label", "truth", *names])


def parquet(folder: Path, rows: int, columns: int) -> list[str]:
    """Write a Parquet file and return the command that audits it."""
    path = folder / "table.parquet"
    pq.write_table(numbers(rows, columns), path)
    return ["run", str(path), "--truth-column", "truth", *AUDIT]


def refused(folder: Path) -> list[str]:
    """Write a CSV file of six rows and a million columns."""
    path = folder / "table.csv"
    header = ",".join(["label", *(f"f{i}" for i in range(999_999))])
    row = ",".join(["1"] * 1_000_000)
    path.write_text("\n".join([header, *[row] * 6]))
    return ["run", str(path), *AUDIT]


def sparse(folder: Path, rows: int = 200_000, features: int = 1_000_000) -> list[str]:
    """Write an svmlight file of 40 features a row; half of each row's are among the first 2,000."""
    rng = np.random.default_rng([0, 2])
    weights = np.random.default_rng(3).normal(0.0, 0.5, features + 1)
    path, every = folder / "table.svm", []
    with path.open("w") as stream:
        for _ in range(0, rows, 10_000):
            usual = 1 + (2_000 * rng.random((10_000, 20)) ** 2).astype(np.int64)
            indices = np.concatenate([usual, rng.integers(1, features + 1, (10_000, 20))], axis=1)
            kept = [np.unique(row) for row in indices]
            log_odds = np.array([weights[row].sum() for row in kept])
            truth = (log_odds + rng.logistic(size=len(kept)) > 0).astype(np.int64)
            labels = released(truth, len(every))
            lines = (
                f"{label} {' '.join(f'{i}:1' for i in row)}\n"
                for label, row in zip(labels, kept, strict=True)
            )
            stream.writelines(lines)
            every.append(truth)
    pq.write_table(pa.table({"label": np.concatenate(every)}), folder / "truth.parquet")
    return ["run", str(path), "--truth", str(folder / "truth.parquet"), *AUDIT]


CASES: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "wide": ("3,000 × 2,000", lambda folder: parquet(folder, 3_000, 2_000)),
    "middle": ("20,000 × 500", lambda folder: parquet(folder, 20_000, 500)),
    "columns": ("300 × 100,000", lambda folder: parquet(folder, 300, 100_000)),
    "refused": ("6 × 1,000,000 (CSV), refused", refused),
    "sparse": ("200,000 × 1,000,000, 40 a row (svmlight)", sparse),
}


def measured(name: str) -> str:
    """Run a case in a process of its own and return its row of the table."""
    title, write = CASES[name]
    with tempfile.TemporaryDirectory() as place:
        command = write(Path(place))
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        script = f"{PEAK}\nfrom ldpaudit.cli.__main__ import main\nmain()"
        ended = subprocess.run(
            [sys.executable, "-c", script, *command], check=False, capture_output=True, text=True
        )
        passed = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = ended.stderr.rpartition("peak ")[2].split()[0]
    mib = int(peak) / 1024
    return f"| {title} | {ended.returncode} | {work:.1f} | {passed:.1f} | {mib:,.0f} |"


PEAK = """
import atexit, resource, sys
def peak():
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
atexit.register(peak)
"""


def main() -> None:
    """Measure the cases that were asked for, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    names = parser.parse_args().cases.split(",")
    print("| table | exit status | processor s | s passed | peak MiB |")
    print("|---|---|---|---|---|")
    for name in names:
        print(measured(name), flush=True)


if __name__ == "__main__":
    main()
