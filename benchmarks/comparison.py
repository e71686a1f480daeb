"""Randomized response against double randomized response on public data, by `ldpaudit compare`.

    python benchmarks/comparison.py make DATA FOLDER    writes releases, test rows …
    python benchmarks/comparison.py compare FOLDER      compares each pair

DATA is a folder with adult.parquet, diabetes130.parquet and fertility.parquet. Of each table a
fifth is public (a mixture generator learns from it), a fifth is kept for testing, and the rest is
released twice at λ = 0.3. Prints a Markdown table of processor seconds, peak memory and findings;
beside it what two runs of `ldpaudit run` take, which compare nothing and train nothing.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import ran

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.with_features import DoubleRR
from ldpaudit.synthesis import generator

NOISE = 0.3
SEED = 20260101
TABLES = {
    "adult": ("income", []),
    "fertility": ("morekids", []),
    "diabetes130": ("readmitted", ["encounter_id", "patient_nbr"]),
}


def make(data: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (label, dropped) in TABLES.items():
        frame = pd.read_parquet(data / f"{name}.parquet").drop(columns=dropped)
        frame = frame.rename(columns={label: "label"}).reset_index(drop=True)
        values = tuple(sorted(frame["label"].astype(str).unique()))
        codes = frame["label"].astype(str).map(values.index).to_numpy(dtype=np.int32)
        features = pa.Table.from_pandas(frame.drop(columns=["label"]), preserve_index=False)
        release(folder, name, features.replace_schema_metadata({}), codes, values)


def release(
    folder: Path, name: str, features: pa.Table, codes: np.ndarray, values: tuple[str, ...]
) -> None:
    rng = np.random.default_rng([SEED, *name.encode()])
    order = rng.permutation(len(codes))
    fifth = len(codes) // 5
    public, test, own = order[:fifth], order[fifth : 2 * fifth], order[2 * fifth :]
    start = time.process_time()
    made = generator("mixture", trained_on="public").fit(
        features.take(public), codes[public], len(values), rng=rng
    )
    asked = rng.integers(0, len(values), len(own)).astype(np.int32)
    synthetic = made.sample(asked, rng)
    print(f"{name}: mixture generator, {time.process_time() - start:.0f} processor seconds")
    kept = features.take(own)
    write(folder / f"{name}.synthetic.parquet", synthetic, values, asked)
    write(folder / f"{name}.test.parquet", features.take(test), values, codes[test])
    write(folder / f"{name}.truth.parquet", None, values, codes[own])
    plain = RandomizedResponse(values, NOISE)
    labels = plain.sample(codes[own], rng)
    write(folder / f"{name}.rr.parquet", kept, values, labels, "randomized-response")
    drawn = DoubleRR(values, NOISE).sample(codes[own], asked, rng)
    both = pa.concat_tables([kept, synthetic.cast(kept.schema)])
    places = np.arange(len(own))
    rows = np.where(drawn.synthetic_rows >= 0, len(own) + drawn.synthetic_rows, places)
    write(folder / f"{name}.double.parquet", both.take(rows), values, drawn.labels, "double-rr")


def write(
    path: Path,
    features: pa.Table | None,
    values: tuple[str, ...],
    codes: np.ndarray,
    mechanism: str | None = None,
) -> None:
    labels = pa.array([values[code] for code in codes])
    alone = pa.table({"label": labels})
    table = alone if features is None else features.append_column("label", labels)
    metadata = {}
    if mechanism is not None:
        declared = {"name": mechanism, "classes": list(values), "lambda": NOISE}
        content = {"version": 1, "label": "label", "mechanism": declared}
        metadata = {"ldpaudit": json.dumps(content)}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def measured(command: list[str]) -> tuple[float, float, float, str]:
    """Run a command; return processor and wall seconds, peak GiB, and its first line."""
    done = ran(command)
    if done.status == 2:
        raise SystemExit(f"{command[1]} could not run")
    return done.used, done.wall, done.peak, done.sentence


def compare(folder: Path, names: list[str]) -> None:
    print("| data | processor s | wall s | GiB | two runs, processor s | ratio | finding |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for name in names or TABLES:
        beside = [f"--truth={folder / f'{name}.truth.parquet'}", "--quiet"]
        synthetic = f"--synthetic={folder / f'{name}.synthetic.parquet'}"
        files = [str(folder / f"{name}.{kind}.parquet") for kind in ("rr", "double")]
        test = f"--test={folder / f'{name}.test.parquet'}"
        outputs = [f"--{kind}={folder / f'{name}.{kind}'}" for kind in ("html", "json")]
        found = measured(["ldpaudit", "compare", *files, *beside, synthetic, test, *outputs])
        runs = 0.0
        for file, more in zip(files, ([], [synthetic]), strict=True):
            runs += measured(["ldpaudit", "run", file, *beside, *more])[0]
        used, wall, peak, sentence = found
        numbers = f"{used:.0f} | {wall:.0f} | {peak:.2f} | {runs:.0f} | {used / runs:.2f}"
        print(f"| {name} | {numbers} | {sentence} |", flush=True)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["make"]:
        make(Path(arguments[1]), Path(arguments[2]))
    else:
        compare(Path(arguments[1]), arguments[2:])


if __name__ == "__main__":
    main(sys.argv[1:])
