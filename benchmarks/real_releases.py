"""Releases of public datasets, honest and dishonest, audited from the command line.

    python benchmarks/real_releases.py make DATA FOLDER      writes the releases and true labels
                                        [NAME]               (only those of one dataset)
    python benchmarks/real_releases.py audit FOLDER          audits each, with and without truth

DATA is a folder with adult.parquet, diabetes130.parquet, skin.parquet, military.parquet,
fertility.parquet and mnist.npz. Prints a Markdown table of verdicts, seconds and peak memory.
"""

import json
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import ran

from ldpaudit.mechanisms import RandomizedResponse

CLAIMED = 1.0
MADE = {"honest": 1.0, "dishonest": 3.0}


@dataclass(frozen=True)
class Dataset:
    """Features and true labels."""

    name: str
    features: pd.DataFrame
    labels: pd.Series


def adult(data: Path) -> Dataset:
    frame = pd.read_parquet(data / "adult.parquet").reset_index(drop=True)
    return Dataset("adult", frame.drop(columns=["income"]), frame["income"])


def diabetes(data: Path) -> Dataset:
    frame = pd.read_parquet(data / "diabetes130.parquet").reset_index(drop=True)
    features = frame.drop(columns=["readmitted", "encounter_id", "patient_nbr"])
    return Dataset("diabetes130", features, frame["readmitted"])


def skin(data: Path) -> Dataset:
    frame = pd.read_parquet(data / "skin.parquet").reset_index(drop=True)
    return Dataset("skin", frame.drop(columns=["label"]), frame["label"])


def military(data: Path) -> Dataset:
    frame = pd.read_parquet(data / "military.parquet").reset_index(drop=True)
    return Dataset("military", frame.drop(columns=["gender"]), frame["gender"])


def fertility(data: Path) -> Dataset:
    frame = pd.read_parquet(data / "fertility.parquet").reset_index(drop=True)
    return Dataset("fertility", frame.drop(columns=["morekids"]), frame["morekids"])


def mnist(data: Path) -> Dataset:
    archive = np.load(data / "mnist.npz")
    images, digits = archive["x_train"], archive["y_train"]
    rows = np.flatnonzero((digits == 0) | (digits == 9))
    flat = images[rows].reshape(len(rows), -1).astype(np.float32) / 255
    return Dataset("mnist-0-vs-9", pd.DataFrame({"image": list(flat)}), pd.Series(digits[rows]))


def mixture(rows: int, seed: int = 0) -> Dataset:
    """A Gaussian mixture of 20 features and two labels, for speed alone."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.457).astype(np.int64)
    values = rng.standard_normal((rows, 20), dtype=np.float32)
    values += (0.25 * (2 * labels - 1))[:, None].astype(np.float32)
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(20)])
    return Dataset(f"mixture-{rows}", frame, pd.Series(labels))


LOADERS: tuple[Callable[[Path], Dataset], ...] = (adult, diabetes, skin, military, fertility, mnist)


def write(dataset: Dataset, folder: Path) -> None:
    """Write an honest and a dishonest release, and the true labels."""
    labels = dataset.labels.to_numpy()
    classes, codes = np.unique(labels.astype(object), return_inverse=True)
    values = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    truth = pa.table({"label": pa.array([values[c] for c in codes])})
    pq.write_table(truth, folder / f"{dataset.name}.truth.parquet")
    declared = RandomizedResponse.from_epsilon(values, CLAIMED)
    declaration = {"name": declared.name, "classes": list(values), "epsilon": CLAIMED}
    metadata = json.dumps({"version": 1, "label": "label", "mechanism": declaration})
    for story, epsilon in MADE.items():
        made = RandomizedResponse.from_epsilon(values, epsilon)
        noise = np.random.default_rng([*dataset.name.encode(), *story.encode()])
        released = made.sample(codes.astype(np.int32), noise)
        table = pa.Table.from_pandas(dataset.features, preserve_index=False)
        column = pa.array([values[code] for code in released])
        table = table.append_column("label", column).replace_schema_metadata({"ldpaudit": metadata})
        pq.write_table(table, folder / f"{dataset.name}.{story}.parquet")


def audits(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield a name and a command for each release, with and without the true labels."""
    for release in sorted(folder.glob("*honest.parquet")):
        name, story = release.name.split(".")[:2]
        truth = folder / f"{name}.truth.parquet"
        for mode in ("insider", "outsider"):
            outputs = [f"--{kind}={folder / f'{name}.{story}.{mode}.{kind}'}" for kind in FORMATS]
            command = ["ldpaudit", "run", str(release), *outputs]
            yield (
                f"{name}, {story}, {mode}",
                command + ["--truth", str(truth)] * (mode == "insider"),
            )


FORMATS = ("html", "json")


def audited(command: list[str]) -> tuple[int, float, float, str]:
    """Run a command; return its status, seconds, peak memory in GiB and the verdict."""
    done = ran(command)
    return done.status, done.wall, done.peak, done.sentence


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["make"]:
        data, folder = Path(arguments[1]), Path(arguments[2])
        folder.mkdir(parents=True, exist_ok=True)
        for load in (*LOADERS, lambda _: mixture(1_000_000)):
            dataset = load(data)
            if dataset.name in (arguments[3:] or [dataset.name]):
                write(dataset, folder)
        return
    print("| release | exit | seconds | peak GiB | verdict |\n|---|---|---|---|---|")
    for name, command in audits(Path(arguments[1])):
        status, seconds, peak, sentence = audited(command)
        print(f"| {name} | {status} | {seconds:.1f} | {peak:.2f} | {sentence} |", flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(sys.argv[1:])
