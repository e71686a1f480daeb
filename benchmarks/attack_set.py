"""Which attacks the default set needs: every attack on every table, with its processor seconds.

    python benchmarks/attack_set.py measure DATA OUT.jsonl [--tables adult,skin] [--epsilons 1,4]
                                    [--rows 100000] [--only bayes,knn]
    python benchmarks/attack_set.py table FILE.jsonl …

``measure`` writes one line for each table, ε and attack: accuracy and advantage over both folds,
seconds and predicted seconds; what several attacks share (a model of the released labels) is paid
by the first that uses it. ``table`` prints Markdown. DATA is the folder with adult.parquet and the
others.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from real_releases import LOADERS, Dataset, mixture

from ldpaudit.attacks import DEFAULT, available_attacks, create_attack
from ldpaudit.attacks.costs import Size, cost_of
from ldpaudit.attacks.interface import missing_need
from ldpaudit.attacks.scoring.measures import ACCURACY, ADVANTAGE, average
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference import runs
from ldpaudit.datasets.features import encode_features
from ldpaudit.errors import LdpAuditError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Release, ReleasedLabels, TrueLabels

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


def weeks(data: Path) -> Dataset:
    frame = pd.read_parquet(data / "fertility.parquet").drop(columns=["rownames"])
    return Dataset("weeks", frame.drop(columns=["work"]), frame["work"])


def tables(data: Path, names: list[str], rows: int | None) -> Iterator[Dataset]:
    makers = {m.__name__: m for m in (*LOADERS, weeks)}
    for name in names:
        kind, _, size = name.partition("-")
        few = int(size) if size else rows
        dataset = mixture(few or 100_000) if kind == "mixture" else makers[kind](data)
        keep = np.random.default_rng(0).permutation(len(dataset.labels))[:few]
        features = dataset.features.iloc[keep].reset_index(drop=True)
        yield Dataset(name, features, dataset.labels.iloc[keep].reset_index(drop=True))


def made(dataset: Dataset, epsilon: float) -> tuple[Release, RandomizedResponse]:
    """Return a release by randomized response, as the command line would read it."""
    classes, codes = np.unique(dataset.labels.to_numpy().astype(str), return_inverse=True)
    mechanism = RandomizedResponse.from_epsilon(tuple(map(str, classes)), epsilon)
    codes = codes.astype(np.int32)
    rng = np.random.default_rng([*dataset.name.encode(), int(100 * epsilon)])
    labels = ReleasedLabels(mechanism.sample(codes, rng))
    table = pa.Table.from_pandas(dataset.features, preserve_index=False)
    columns = list(zip(table.column_names, table.columns, strict=True))
    features = encode_features(columns, len(codes)).table()
    names = mechanism.classes
    return Release(features, labels, names, names, TrueLabels(codes)), mechanism


def context_of(release: Release, mechanism: RandomizedResponse, seed: int = 1) -> AuditContext:
    return AuditContext(release, mechanism, Plan(seed=seed, threads=1))


def measured(context: AuditContext, only: list[str]) -> Iterator[dict[str, object]]:
    """Yield what each attack reaches and costs, in the order of the list."""
    release = context.release
    size = Size(len(release) // 2, release.features.width, len(release.classes))
    paid: set[str] = set()
    start = time.process_time()
    folds = runs.folds_of(context)
    yield {"attack": "(model of true labels)", "seconds": time.process_time() - start}
    for name in only or available_attacks():
        try:
            attacks = [create_attack(name, fold.knowledge) for fold in folds]
            if missing_need(attacks[0], folds[0].fitting, folds[0].knowledge):
                continue
            start = time.process_time()
            run = runs._run(context, folds, name, attacks)
        except LdpAuditError as error:
            yield {"attack": name, "failed": str(error)}
            continue
        seconds = time.process_time() - start
        parts = cost_of(attacks[0], size)
        predicted = sum(price for part, price in parts.items() if part not in paid)
        paid |= set(parts)
        scores = {m.name: average(run.folds, m.value) for m in (ACCURACY, ADVANTAGE)}
        spent = {"seconds": seconds, "predicted": predicted}
        yield {"attack": name, **spent, "uses_release": run.uses_release, **scores}


def measure(arguments: argparse.Namespace) -> None:
    names, only = arguments.tables.split(","), list(filter(None, arguments.only.split(",")))
    for dataset in tables(arguments.data, names, arguments.rows):
        for epsilon in map(float, arguments.epsilons.split(",")):
            release, mechanism = made(dataset, epsilon)
            size = {"rows": len(release), "width": release.features.width}
            with arguments.out.open("a", encoding="utf-8") as out:
                for line in measured(context_of(release, mechanism), only):
                    line = {"table": dataset.name, "epsilon": epsilon, **size, **line}
                    out.write(json.dumps(line) + "\n")
                    out.flush()


def table(arguments: argparse.Namespace) -> None:
    """Print, by table and ε, the strongest attack of the default set and of the others."""
    found: dict[tuple[str, int, float], list[dict]] = defaultdict(list)
    for path in arguments.files:
        for line in map(json.loads, path.read_text().splitlines()):
            found[line["table"], line["rows"], line["epsilon"]].append(line)
    heads = ("by default", "of these, without true labels", "the others")
    print(f"| table | rows | ε | strongest {' | '.join(heads)} | default ahead by |")
    print("|---|---:|---:|---|---|---|---:|")
    for (name, rows, epsilon), lines in found.items():
        scored = [line for line in lines if line.get("uses_release")]
        usual = [line for line in scored if line["attack"] in DEFAULT]
        public = [line for line in usual if line["attack"] != "oracle"]
        others = [line for line in scored if line["attack"] not in DEFAULT]
        if not public or not others:
            continue
        # Advantages: slow attacks are asked about a sample, and a sample has its own difficulty.
        kinds = (usual, public, others)
        best = [max(each, key=lambda line: line["advantage"]) for each in kinds]
        shown = [f"`{x['attack']}` {100 * x['advantage']:+.2f}" for x in best]
        ahead = [f"{100 * (x['advantage'] - best[2]['advantage']):+.2f}" for x in best[:2]]
        print(f"| {name} | {rows:,} | {epsilon:g} | {' | '.join(shown)} | {' / '.join(ahead)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("measure")
    part.add_argument("data", type=Path)
    part.add_argument("out", type=Path)
    part.add_argument("--tables", default="adult,diabetes,skin,military,fertility,weeks,mixture")
    part.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    part.add_argument("--rows", type=int, default=None)
    part.add_argument("--only", default="")
    part.set_defaults(work=measure)
    part = parts.add_parser("table")
    part.add_argument("files", type=Path, nargs="+")
    part.set_defaults(work=table)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
