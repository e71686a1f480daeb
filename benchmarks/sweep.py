"""A sweep against the shell loop that a user would write: privatize, run, one point after another.

Run: python benchmarks/sweep.py [rows]

The loop calls ``ldpaudit privatize --experimental`` and ``ldpaudit run --truth`` for every λ; it
trains no learner and holds nothing out, so it does less. Both audit with the same options. Rounds
alternate.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

ADULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult.parquet"
GRID = (0.1, 0.2, 0.3, 0.4)
ROUNDS = 2
AUDIT = ("--threads", "1", "--skip", "renyi", "--quiet")


def ldpaudit(*words: object) -> None:
    command = [sys.executable, "-m", "ldpaudit.cli", *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, env=environment)


def loop(data: Path, folder: Path) -> float:
    begin = time.perf_counter()
    for noise in GRID:
        release, truth = folder / f"{noise}.parquet", folder / f"{noise}.truth.parquet"
        own = ("--mechanism", "randomized-response", "--lambda", noise, "--label", "income")
        simulated = ("--experimental", "--seed", 1, "--secret", truth, "--overwrite", "--quiet")
        ldpaudit("privatize", data, "-o", release, *own, *simulated)
        ldpaudit("run", release, "--truth", truth, "--exit-zero", *AUDIT)
    return time.perf_counter() - begin


def sweep(data: Path, folder: Path, processes: int) -> float:
    begin = time.perf_counter()
    grid = ("--lambda", ",".join(map(str, GRID)), "--processes", processes)
    places = ("--label", "income", "--json", folder / "sweep.json")
    ldpaudit("sweep", data, "--mechanism", "rr", *grid, *places, *AUDIT)
    return time.perf_counter() - begin


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "adult.parquet"
        pd.read_parquet(ADULT).head(rows).to_parquet(data)
        for _ in range(ROUNDS):
            seconds.setdefault("privatize and run, in a loop", []).append(loop(data, folder))
            for n in (1, 2):
                key = f"sweep, {n} process{'es' if n > 1 else ''}"
                seconds.setdefault(key, []).append(sweep(data, folder, n))
        points = json.loads((folder / "sweep.json").read_text())["points"]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(f"Adult, {rows:,} rows × 15 features, {len(GRID)} values of λ, {ROUNDS} rounds\n")
    print("| | seconds, median | time ratio, median |")
    print("|---|---|---|")
    base = next(iter(seconds.values()))
    for key, found in seconds.items():
        ratio = statistics.median(one / other for one, other in zip(found, base, strict=True))
        print(f"| {key} | {statistics.median(found):.1f} | {ratio:.2f} |")
    print("\n| λ | strongest attack | test accuracy of a corrected learner |")
    print("|---|---|---|")
    for point in points:
        leak, use = point["attack.best.accuracy"], point["test_accuracy"]
        print(f"| {point['value']:g} | {leak['value']:.3f} | {use['value']:.3f} |")


if __name__ == "__main__":
    main()
