"""Label inference on 100,000 rows: seconds and accuracy beside Anonymeter and SDMetrics.

    python benchmarks/attack_speed.py PEERS [--rows 100000] [--attacked 1000] [--epsilon 2]

PEERS is the Python of an environment with anonymeter and sdmetrics (`attacks.py peers
--install-peers` makes one: FOLDER/attacks/bin/python). All see the same rows: four Gaussian
features whose classes are 0.7 apart in each, labels by randomized response.

ldpaudit runs as its command: start, reading, all attacks of the default audit on every row, their
intervals and the page. The peers are given data in memory, and only their attack is timed. Since
all rows would take hours they attack some, and three times as many, given the whole release; what
each further row took gives their seconds for all (each row is a query by itself).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from attack_peers import ATTACKS, FEATURES
from measuring import ran

from ldpaudit.mechanisms import RandomizedResponse

RUN = (sys.executable, "-c", "from ldpaudit.cli import main; main()", "run")
SHORT = {"SDMetrics, CategoricalKNN": 0.02, "SDMetrics, DisclosureProtection": 0.02}
"""Attacks that take long: the share of the rows that they attack."""


def write(folder: Path, rows: int, epsilon: float) -> None:
    """Write the release for both: Parquet with its declaration and the truth, and two CSV files."""
    features, noise = (np.random.default_rng([7, part]) for part in (0, 1))
    truth = (features.random(rows) < 0.5).astype(np.int32)
    values = features.normal(size=(rows, 4)) + 0.35 * (2 * truth[:, None] - 1)
    labels = RandomizedResponse.from_epsilon((0, 1), epsilon).sample(truth, noise)
    frame = pd.DataFrame(values, columns=FEATURES)
    frame.assign(label=truth).to_csv(folder / "original.csv", index=False)
    frame.assign(label=labels).to_csv(folder / "released.csv", index=False)
    mechanism = {"name": "randomized-response", "classes": [0, 1], "epsilon": epsilon}
    declaration = json.dumps({"version": 1, "label": "label", "mechanism": mechanism})
    table = pa.Table.from_pandas(frame.assign(label=labels), preserve_index=False)
    table = table.replace_schema_metadata({"ldpaudit": declaration})
    pq.write_table(table, folder / "released.parquet")
    pq.write_table(pa.table({"label": truth}), folder / "truth.parquet")


def ours(folder: Path) -> list[float]:
    """Return the accuracy of the strongest attack, seconds and processor seconds."""
    words = ["--only", "label-inference", "--quiet", "--json", str(folder / "r.json")]
    files = [str(folder / "released.parquet"), "--truth", str(folder / "truth.parquet")]
    done = ran([*RUN, *files, *words, "--html", str(folder / "r.html")])
    estimates = json.loads((folder / "r.json").read_text())["estimates"]
    best = next(e for e in estimates if e["id"] == "attack.best.accuracy")
    return [best["value"], done.wall, done.used]


def theirs(
    python: Path, folder: Path, name: str, attacked: int, limit: float
) -> list[float] | None:
    """Return the share that an attack infers, seconds and processor seconds; None: too many."""
    script = str(Path(__file__).with_name("attack_peers.py"))
    words = [str(python), script, str(folder), name, str(attacked)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-500:]}")
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Attacks beside other evaluators.")
    parser.add_argument("peers", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--attacked", type=int, default=1_000)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each attack")
    parser.add_argument("--epsilon", type=float, default=2.0)
    asked = parser.parse_args()
    print("| | rows attacked | accuracy | seconds | processor s | processor s for all | times |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, asked.rows, asked.epsilon)
        share, wall, own = ours(folder)
        figures = f"{share:.3f} | {wall:.1f} | {own:.1f} | {own:.1f} | 1 |"
        print(f"| `ldpaudit run`, default attacks | {asked.rows:,} | {figures}", flush=True)
        for name in ATTACKS:
            attacked = int(asked.attacked * SHORT.get(name, 1.0))
            first = theirs(asked.peers, folder, name, attacked, asked.limit)
            second = first and theirs(asked.peers, folder, name, 3 * attacked, asked.limit)
            if first is None or second is None:
                print(f"| {name} | {attacked:,} | – | > {asked.limit:g} | – | – | – |", flush=True)
                continue
            share, wall, used = second
            each = (used - first[2]) / (2 * attacked)
            every = used + each * (asked.rows - 3 * attacked)
            figures = f"{share:.3f} | {wall:.1f} | {used:.1f} | {every:.0f} | {every / own:.1f} |"
            print(f"| {name} | {3 * attacked:,} | {figures}", flush=True)


if __name__ == "__main__":
    main()
