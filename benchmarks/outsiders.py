"""Honest releases without true labels: how many get a verdict, for each mechanism.

``python benchmarks/outsiders.py [--rows 50000] [--seeds 3] [--epsilon 1 2] [MECHANISM …]`` prints
a Markdown table. Features tell the upper half of the labels from the lower with an AUC of about
0.85. Every release is what its declaration says, so exit 0 is the right answer.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

CLASSES = ("randomized-response", "rr-top-k", "double-rr", "dummy-features-rr", "gaussian-rr")
NUMBERS = (
    "rr-on-bins",
    "optimal-unbiased",
    "debiased-rr",
    "laplace",
    "discrete-laplace",
    "staircase",
    "discrete-staircase",
    "exponential",
)
FLOATING = ("gaussian-rr",)
"""Refused without --experimental: noise in floating point."""
MOST = 10


def people(rows: int, numeric: bool, seed: int) -> pd.DataFrame:
    """Return features and a true label, two classes or the numbers 0 to 10."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((rows, 3))
    score = signal @ [1.2, 0.8, 0.5] + rng.standard_normal(rows)
    frame = pd.DataFrame(signal.astype(np.float32), columns=["a", "b", "c"])
    frame["town"] = rng.choice(["oslo", "rome", "bonn", "bern"], rows)
    if numeric:
        frame["label"] = np.clip(np.rint(MOST * (0.5 + score / 5)), 0, MOST).astype(np.int64)
    else:
        frame["label"] = np.where(score > 0, "yes", "no")
    return frame


def options(mechanism: str, folder: Path, data: pd.DataFrame, seed: int) -> list[str]:
    """Return what a mechanism needs besides ε."""
    words = []
    shares = data["label"].value_counts(normalize=True).sort_index()
    if mechanism in NUMBERS:
        words += ["--labels", f"0:{MOST}:1"]
    if mechanism in ("rr-top-k", "rr-on-bins", "optimal-unbiased"):
        prior = pd.DataFrame({"label": shares.index, "probability": shares.to_numpy()})
        prior.to_csv(folder / "prior.csv", index=False)
        words += ["--prior", str(folder / "prior.csv")]
    if mechanism == "double-rr":
        people(len(data), False, seed + 10_000).to_parquet(folder / "synthetic.parquet")
        words += ["--synthetic", str(folder / "synthetic.parquet")]
    if mechanism == "dummy-features-rr":
        dummy = people(len(data), False, seed + 20_000)
        dummy.to_parquet(folder / "synthetic.parquet")
        words += ["--synthetic", str(folder / "synthetic.parquet")]
    if mechanism == "gaussian-rr":
        words += ["--radius", "4", "--feature-epsilon", "2", "--delta", "1e-5", "--project"]
        words += ["--drop", "town"]
    return words + (["--experimental", "--seed", str(seed)] if mechanism in FLOATING else [])


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ldpaudit."""
    line = [sys.executable, "-m", "ldpaudit.cli", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def audited(mechanism: str, epsilon: float, rows: int, seed: int) -> tuple[int, str]:
    """Return the exit status of one honest release's audit, and its sentence or error."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = people(rows, mechanism in NUMBERS, seed)
        data.to_parquet(folder / "data.parquet")
        release, result = folder / "release.parquet", folder / "result.json"
        made = command(
            *["privatize", str(folder / "data.parquet"), "-o", str(release)],
            *["--mechanism", mechanism, "--epsilon", str(epsilon)],
            *options(mechanism, folder, data, seed),
        )
        if made.returncode != 0:
            return 2, made.stderr.strip()
        # The attacks decide no default check.
        found = command(
            *["run", str(release), "--only", "mechanism", "--only", "power", "--quiet"],
            *["--seed", str(seed), "--json", str(result)],
        )
        if not result.exists():
            return found.returncode, found.stderr.strip()
        return found.returncode, str(json.loads(result.read_text())["sentence"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mechanisms", nargs="*", default=[*CLASSES, *NUMBERS])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0])
    asked = parser.parse_args()
    print("| mechanism | ε | exit 0 | of | a sentence |\n|---|---|---|---|---|")
    for mechanism in asked.mechanisms:
        for epsilon in asked.epsilon:
            runs = [audited(mechanism, epsilon, asked.rows, s) for s in range(asked.seeds)]
            passed = sum(status == 0 for status, _ in runs)
            last = max(runs)[1].splitlines()[-1] if max(runs)[1] else ""
            print(f"| {mechanism} | {epsilon:g} | {passed} | {len(runs)} | {last} |", flush=True)


if __name__ == "__main__":
    main()
