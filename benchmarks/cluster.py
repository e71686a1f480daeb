"""Local Dask workers beside the threads of one process: wall time and CPU time of one audit.

A mixture of two Gaussian classes, randomized labels, every row a query: nearly all of the work is
counting neighbours. Each audit runs in a process of its own, whose children's CPU time counts.

    python benchmarks/cluster.py [--rows 400000] [--neighbors 1000] [--workers 2] [--kill]
    python benchmarks/cluster.py --cost [--rows 2000000]

Writes a row for each to standard output and compares the results: they must be equal but for times.
``--cost`` measures the constants of results/cluster.md instead, on one processor.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
from measuring import timed

COLUMNS = 18
_WARM = 4
"""CPU seconds that a worker has spent before it is killed: more than starting takes."""
_Timed = tuple[float, float, str, float]


def main() -> None:
    options = _options()
    if options.cost:
        _print_cost(options.rows // 2)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        release, truth = _release(place, options.rows)
        words = ["run", release, "--truth", truth, "--seed", "1", "--queries", "all"]
        words += ["--neighbors", str(options.neighbors), "--threads", str(options.workers)]
        for audit in ("mechanism", "instance-loss"):
            words += ["--only", audit]
        rows = {"one process": _timed(words, place / "a", [], False)}
        local = ["--cluster", f"local:{options.workers}"]
        rows["local workers"] = _timed(words, place / "b", local, False)
        if options.kill:
            rows["… one killed"] = _timed(words, place / "c", local, True)
        print(
            f"| {options.rows:,} × {COLUMNS}, k = {options.neighbors:,} | wall s | CPU s | same |"
        )
        print("|---|---|---|---|")
        first = rows["one process"][2]
        for name, (wall, cpu, result, _) in rows.items():
            print(f"| {name} | {wall:.1f} | {cpu:.1f} | {'yes' if result == first else 'NO'} |")
        alone, shared = rows["one process"], rows["local workers"]
        print(
            f"\nspeed: {alone[0] / shared[0]:.2f} by wall time, {alone[1] / shared[1]:.2f} by CPU"
        )
        print(f"of the audit instance-loss alone: {alone[3] / shared[3]:.2f} by wall time")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--neighbors", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", action="store_true", help="also with a worker killed halfway")
    parser.add_argument("--cost", action="store_true", help="measure the cost of a cell instead")
    return parser.parse_args()


def _print_cost(rows: int) -> None:
    """Print the seconds of the index per row, and those of a query per row that it is held to."""
    from ldpaudit.estimators.neighbors import (
        count_labels,
        default_neighbors,
        neighbor_search,
    )

    rng, asking = np.random.default_rng(1), 32_768
    index = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    queries = rng.standard_normal((asking, COLUMNS), dtype=np.float32)
    labels, k = rng.integers(0, 2, rows).astype(np.int32), default_neighbors(rows, COLUMNS)
    build = partial(neighbor_search, index, labels, k, 2, asking, seed=1)
    search = build()
    seconds = [timed(work, 3)[1] for work in (build, partial(count_labels, search, queries))]
    per_pair = seconds[1] / (asking * search.visited)
    print(f"{rows:,} rows indexed, k = {k:,}, about {search.visited:,} rows for each query")
    print(f"b = {seconds[0] / rows:.2e} s per indexed row; c = {per_pair:.2e} s per query and row")


def _release(folder: Path, rows: int) -> tuple[str, str]:
    """Write a release by randomized response, ε = 1, and its true labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ldpaudit.datasets import declare
    from ldpaudit.mechanisms import RandomizedResponse
    from ldpaudit.release import Declaration

    rng, noise = np.random.default_rng(1), np.random.default_rng(2)
    codes = rng.integers(0, 2, rows).astype(np.int32)
    points = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    points[:, :3] += codes[:, None]
    mechanism = RandomizedResponse.from_epsilon(("no", "yes"), 1.0)
    columns = {f"x{i}": points[:, i] for i in range(COLUMNS)}
    names = np.array(["no", "yes"])
    columns["label"] = names[mechanism.sample(codes, noise)]
    claim = Declaration(mechanism.name, {"classes": ["no", "yes"], "epsilon": 1.0})
    release, truth = folder / "release.parquet", folder / "truth.parquet"
    pq.write_table(declare(pa.table(columns), claim, "label"), release)
    pq.write_table(pa.table({"label": names[codes]}), truth)
    return str(release), str(truth)


def _timed(words: list[str], out: Path, more: list[str], kill: bool) -> _Timed:
    """Return wall seconds, CPU seconds with all children, the result, and one audit's seconds."""
    command = [sys.executable, "-m", "ldpaudit.cli", *words, "--exit-zero", "--quiet", *more]
    command += ["--json", f"{out}.json", "--html", f"{out}.html"]
    before, start = os.times(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    if kill:
        threading.Thread(target=_kill_worker, args=(process.pid,), daemon=True).start()
    if process.wait():
        raise SystemExit("An audit failed.")
    wall, after = time.monotonic() - start, os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    result = json.loads(Path(f"{out}.json").read_text())
    seconds = next(a["seconds"] for a in result["audits"] if a["id"] == "instance-loss")
    return wall, cpu, _without_times(result), float(seconds)


def _kill_worker(pid: int) -> None:
    """Kill a worker as soon as it has computed for a few seconds."""
    while True:
        time.sleep(0.2)
        for child in psutil.Process(pid).children(recursive=True):
            if "spawn_main" in " ".join(child.cmdline()) and sum(child.cpu_times()[:2]) > _WARM:
                child.kill()
                return


def _without_times(value: object) -> str:
    def without(part: object) -> object:
        if isinstance(part, dict):
            return {k: without(v) for k, v in part.items() if k not in ("seconds", "command")}
        return [without(p) for p in part] if isinstance(part, list) else part

    return json.dumps(without(value), sort_keys=True)


if __name__ == "__main__":
    main()
