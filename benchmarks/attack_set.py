"""Which attacks the default set needs: every attack on every table, with its processor seconds.

    python benchmarks/attack_set.py measure DATA OUT.jsonl [--tables adult,skin] [--epsilons 1,4]
                                    [--rows 100000] [--only bayes,knn]
    python benchmarks/attack_set.py table FULL.jsonl [DEFAULT.jsonl]

``measure`` writes one line for each table, ε and attack: accuracy over both folds and seconds, with
what the attack shares with others (a model of the released labels) paid by the first that uses it.
``table`` prints Markdown. DATA is the folder with adult.parquet and the others.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from real_releases import LOADERS, Dataset, mixture

from ldpaudit.attacks import available_attacks, create_attack
from ldpaudit.attacks.interface import missing_need
from ldpaudit.attacks.scoring.measures import ACCURACY, ADVANTAGE, average
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference import runs
from ldpaudit.datasets.features import encode_features
from ldpaudit.errors import LdpAuditError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Release, ReleasedLabels, TrueLabels

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
SMALL = 6_000


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
        scores = {m.name: average(run.folds, m.value) for m in (ACCURACY, ADVANTAGE)}
        yield {"attack": name, "seconds": seconds, "uses_release": run.uses_release, **scores}


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
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
