"""What attacks make of real and of difficult tables: by table, ε and draw of the noise.

    python benchmarks/label_models.py measure DATA OUT.jsonl [--tables adult,zips] [--rows 10000]
    python benchmarks/label_models.py table FORMER.jsonl NEW.jsonl

``measure`` writes one line for each table, ε and draw: the accuracy of every attack, scored as in
an audit, and the processor seconds of all. ``table`` prints the former and the new numbers as
Markdown, in points of accuracy. DATA is the folder with adult.parquet and the others. Made up are
``zips``, a column of 1,500 values that each have an effect of their own, and ``pairs``, columns
that say together what none of them says alone.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from real_releases import Dataset, adult, diabetes, fertility

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.audit import AUDIT
from ldpaudit.datasets.features import encode_features
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Release, ReleasedLabels, TrueLabels

EPSILONS = (0.5, 1.0, 2.0)
DRAWS = 3
ATTACKS = ("best", "bayes", "oracle", "features-only")


def zips(_: Path) -> Dataset:
    rng = np.random.default_rng(1)
    place, values = rng.integers(0, 1500, 12_000), rng.normal(size=(12_000, 3))
    logits = rng.normal(scale=1.5, size=1500)[place] + 0.5 * values[:, 0]
    frame = pd.DataFrame(values, columns=["a", "b", "c"]).assign(zip=place.astype(str))
    return Dataset("zips", frame, _drawn(logits, rng))


def pairs(_: Path) -> Dataset:
    rng = np.random.default_rng(2)
    levels = rng.integers(0, 8, (12_000, 8))
    effects = rng.normal(scale=1.5, size=(2, 8, 8))
    logits = effects[0][levels[:, 0], levels[:, 1]] + effects[1][levels[:, 2], levels[:, 3]]
    frame = pd.DataFrame({f"x{j}": column.astype(str) for j, column in enumerate(levels.T)})
    return Dataset("pairs", frame, _drawn(logits, rng))


def _drawn(logits: np.ndarray, rng: np.random.Generator) -> pd.Series:
    return pd.Series(np.where(rng.random(len(logits)) < 1 / (1 + np.exp(-logits)), "yes", "no"))


TABLES = {made.__name__: made for made in (adult, diabetes, fertility, zips, pairs)}


def released(dataset: Dataset, rows: int, epsilon: float, draw: int) -> AuditContext:
    """Return an audit of some rows, released by randomized response."""
    rng = np.random.default_rng([draw, int(100 * epsilon)])
    keep = np.sort(np.random.default_rng(draw).permutation(len(dataset.labels))[:rows])
    labels = dataset.labels.to_numpy()[keep].astype(str)
    classes, codes = np.unique(labels, return_inverse=True)
    mechanism = RandomizedResponse.from_epsilon(tuple(map(str, classes)), epsilon)
    table = pa.Table.from_pandas(dataset.features.iloc[keep], preserve_index=False)
    columns = list(zip(table.column_names, table.columns, strict=True))
    features = encode_features(columns, len(codes), names=table.column_names).table()
    codes = codes.astype(np.int32)
    labels = ReleasedLabels(mechanism.sample(codes, rng))
    names = mechanism.classes
    release = Release(features, labels, names, names, TrueLabels(codes))
    return AuditContext(release, mechanism, Plan(seed=draw, threads=1))


def _is_accuracy(identifier: str) -> bool:
    """Return whether it is an attack's accuracy on held-out rows, of all classes."""
    return identifier.endswith(".accuracy") and identifier.count(".") == 2


def measure(arguments: argparse.Namespace) -> None:
    for name in arguments.tables.split(","):
        dataset = TABLES[name](arguments.data)
        for epsilon in EPSILONS:
            for draw in range(DRAWS):
                context = released(dataset, arguments.rows, epsilon, draw)
                start = time.process_time()
                found = AUDIT.run(context).estimates
                seconds = time.process_time() - start
                scored = {e.id.split(".")[1]: e.value for e in found if _is_accuracy(e.id)}
                line = {"table": name, "epsilon": epsilon, "draw": draw, "seconds": seconds}
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps({**line, "accuracy": scored}) + "\n")


def table(arguments: argparse.Namespace) -> None:
    """Print accuracies in per cent, former → new, and differences with their standard errors."""
    sides = [list(map(json.loads, path.read_text().splitlines())) for path in arguments.files]
    found: dict[tuple[str, float], list[list[dict]]] = defaultdict(lambda: [[], []])
    for side, lines in enumerate(sides):
        for line in lines:
            found[line["table"], line["epsilon"]][side].append(line)
    print(f"| table | ε | {' | '.join(ATTACKS)} | seconds |")
    print(f"|---|---:|{'---:|' * (len(ATTACKS) + 1)}")
    for (name, epsilon), both in found.items():
        cells = []
        for attack in ATTACKS:
            pair = [np.array([100 * x["accuracy"][attack] for x in side]) for side in both]
            differences = pair[1] - pair[0]
            error = differences.std(ddof=1) / np.sqrt(len(differences))
            cells.append(
                f"{pair[0].mean():.2f} → {pair[1].mean():.2f}: "
                f"{differences.mean():+.2f} ± {error:.2f}"
            )
        spent = [np.mean([line["seconds"] for line in side]) for side in both]
        print(f"| {name} | {epsilon:g} | {' | '.join(cells)} | {spent[0]:.1f} → {spent[1]:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("measure")
    part.add_argument("data", type=Path)
    part.add_argument("out", type=Path)
    part.add_argument("--tables", default=",".join(TABLES))
    part.add_argument("--rows", type=int, default=10_000)
    part.set_defaults(work=measure)
    part = parts.add_parser("table")
    part.add_argument("files", type=Path, nargs=2)
    part.set_defaults(work=table)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
