"""Speed and memory of ``ldpaudit privatize`` against a script that does it all in memory.

Run: python benchmarks/privatize.py [folder for the files [rows of a large table]]

The script is what a user would write: pandas reads the file, NumPy draws the labels in floating
point, pandas writes the file. Runs alternate; each is a process of its own, so that its peak memory
is its own and the imports count. "OS" takes the random words of the operating system, as a release
must; "NumPy" is an experiment. With a number of rows only the command runs, once, on a table of 18
numbers a row.
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scale_tables
from measuring import ran

ROUNDS = {1_000_000: 5, 300_000: 1, 3_000_000: 1}
# The peak of this process's own memory: what getrusage tells includes the parent's at the fork.
PEAK = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
IN_MEMORY = """
import sys
import numpy as np, pandas as pd
frame = pd.read_parquet(sys.argv[1])
rng = np.random.default_rng()
classes = np.unique(frame["label"])
noise = len(classes) / (len(classes) - 1 + np.exp(1.0))
new = rng.choice(classes, len(frame))
frame["label"] = np.where(rng.random(len(frame)) < noise, new, frame["label"])
frame.to_parquet(sys.argv[2])
"""
PRIVATIZE = """
import sys
from pathlib import Path
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
privatize(PrivatizeRequest(
    sys.argv[1], Path(sys.argv[2]), "randomized-response", epsilon=1.0, overwrite=True,
    experimental=sys.argv[3] == "numpy"))
"""


def table(rows: int, path: Path) -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, object] = {f"x{i}": rng.standard_normal(rows) for i in range(17)}
    columns["town"] = rng.choice(["oslo", "rome", "bonn"], rows)
    columns["count"] = rng.integers(0, 1000, rows)
    columns["label"] = rng.choice(["no", "yes"], rows)
    pq.write_table(pa.table(columns), path)


def run(code: str, *words: str) -> tuple[float, float]:
    """Return the seconds and the peak memory in MiB of a process."""
    start = time.perf_counter()
    command = [sys.executable, "-c", code + PEAK, *words]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, int(told) / 1024


def measure(folder: Path, rows: int) -> None:
    data, out = str(folder / "data.parquet"), str(folder / "out.parquet")
    table(rows, Path(data))
    calls = {
        "pandas in memory": (IN_MEMORY, data, out),
        "privatize, OS": (PRIVATIZE, data, out, "os"),
        "privatize, NumPy": (PRIVATIZE, data, out, "numpy"),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(ROUNDS[rows]):
        for name, call in calls.items():
            found[name].append(run(*call))
    plain = found["pandas in memory"]
    for name, runs in found.items():
        ratios = [t / p for (t, _), (p, _) in zip(runs, plain, strict=True)]
        seconds = statistics.median(t for t, _ in runs)
        peak = max(m for _, m in runs)
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        speed = rows / seconds / 1e6
        print(f"| {rows:,} | {name} | {seconds:.2f} | {speed:.2f} | {ratio} | {peak:.0f} |")


def large(folder: Path, rows: int) -> None:
    """Print what the command takes for a table that is made and written block by block."""
    data, blocks = folder / "data.parquet", scale_tables.blocks("susy", rows, seed=0)
    file = scale_tables.ParquetFile(data, None)
    for _, block in blocks:
        file.write(block.rows, block.labels)
    file.close()
    asked = [
        "--label",
        "label",
        "--mechanism",
        "randomized-response",
        "--epsilon",
        "1",
        "--overwrite",
    ]
    program = [sys.executable, "-c", "from ldpaudit.cli import main; main()", "privatize"]
    done = ran([*program, str(data), "-o", str(folder / "out.parquet"), *asked])
    figures = f"{done.wall:.1f} | {done.used:.1f} | {done.peak:.2f} | {done.status} |"
    print("| rows × 18 | seconds | processor s | peak GiB | exit |\n|---|---|---|---|---|")
    print(f"| {rows:,} | {figures}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        with tempfile.TemporaryDirectory(dir=sys.argv[1]) as place:
            large(Path(place), int(sys.argv[2]))
        sys.exit()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ")
    print(f"NumPy {np.__version__}, pyarrow {pa.__version__}\n")
    print("| rows × 20 | | seconds, median | million rows/s | time ratio | peak MiB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        for size in ROUNDS:
            measure(Path(place), size)
