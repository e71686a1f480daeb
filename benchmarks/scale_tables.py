"""Releases of any number of rows, made block by block in constant memory, with known P(label | x).

    python benchmarks/scale_tables.py susy FOLDER --rows 4500000     18 numbers a row, Parquet
    python benchmarks/scale_tables.py credit FOLDER --rows 30000     23 mixed columns, Parquet
    python benchmarks/scale_tables.py ctr FOLDER --rows 5000000      40 of 10⁶ features, svmlight

Writes NAME.parquet or NAME.svm, released by randomized response with the declaration inside (for
svmlight: beside it, NAME.svm.ldpaudit.json), NAME.truth.parquet and, with --eta, NAME.eta.parquet;
NAME is the table and its rows. Rows come in blocks of a fixed size, each with generators of its
own, so the first rows of a larger table are those of a smaller one. Labels and noise come from
different streams: a seed that both share is a fault, which an audit rightly finds.

susy: two classes of three Gaussians each; P(Y = 1) = .457 and the best guess from x alone is right
in about 80 of 100 rows, as for the SUSY data. --columns asks for more columns than 18, which then
are noise, or fewer. credit: amounts, ages and codes of few values, as in a bank's table. ctr:
each of 40 fields names one feature of its own by Zipf's law, half of the fields those that one of
50 kinds of users prefers; features are numbered by a hash.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.randomness import child_generator

BLOCK = 100_000
"""Rows that are made and written at once."""
PRIOR = 0.457
CLASSES = (0, 1)
FIELDS, KINDS = 40, 50

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """Rows (a pyarrow table or, for svmlight, integers of shape (m, 40)), P(Y = 1 | x), labels."""

    rows: Any
    eta: Floats
    labels: npt.NDArray[np.int32]


def drawn(rows: Any, log_odds: Floats, rng: np.random.Generator) -> Block:
    eta = 1 / (1 + np.exp(-log_odds))
    return Block(rows, eta, (rng.random(len(eta)) < eta).astype(np.int32))


def susy(m: int, rng: np.random.Generator, columns: int = 18) -> Block:
    """Return m rows of the mixture; only the first 18 columns tell of the label."""
    telling = min(columns, 18)
    # Class, component, column; the same whatever the seed of the rows.
    means = np.random.default_rng(18).normal(0.0, 0.45, (2, 3, telling))
    labels = (rng.random(m) < PRIOR).astype(np.int32)
    points = rng.standard_normal((m, columns), dtype=np.float32)
    points[:, :telling] += means[labels, rng.integers(0, 3, m)].astype(np.float32)
    x = points[:, :telling].astype(np.float64)
    logs = [np.logaddexp.reduce(x @ c.T - (c**2).sum(axis=1) / 2, axis=1) for c in means]
    eta = 1 / (1 + np.exp(logs[0] - logs[1]) * (1 - PRIOR) / PRIOR)
    names = [f"x{i}" for i in range(columns)]
    return Block(pa.table(list(np.ascontiguousarray(points.T)), names), eta, labels)


def credit(m: int, rng: np.random.Generator) -> Block:
    """Return m rows of a bank's table: whether somebody will be late with a payment."""
    late = rng.standard_normal(m)
    delays = [
        np.clip(np.rint(late + rng.normal(-0.6, 0.8, m)), -2, 8).astype(int) for _ in range(6)
    ]
    limit = np.round(np.exp(rng.normal(11.6 - 0.3 * late, 0.8)), -4) + 10_000
    bills = [np.rint(limit * rng.beta(1.2, 2.0, m)) for _ in range(6)]
    paid = [np.rint(bill * rng.beta(1.0, 8.0 + 4 * (late > 0))) for bill in bills]
    education = rng.choice(
        ["school", "university", "graduate", "other"], m, p=[0.17, 0.47, 0.34, 0.02]
    )
    columns = {
        "limit": limit,
        "sex": rng.choice(["f", "m"], m, p=[0.6, 0.4]),
        "education": education,
        "marriage": rng.choice(["married", "single", "other"], m, p=[0.45, 0.53, 0.02]),
        "age": np.clip(np.rint(rng.gamma(14, 2.5, m)), 21, 79).astype(int),
        **{f"delay_{i}": column for i, column in enumerate(delays)},
        **{f"bill_{i}": column for i, column in enumerate(bills)},
        **{f"paid_{i}": column for i, column in enumerate(paid)},
    }
    wealth = 0.3 * (np.log1p(limit) - 11.6) - 0.4 * (education == "school")
    log_odds = -1.6 + 0.9 * delays[0] + 0.3 * delays[1] - wealth
    return drawn(pa.table(columns), log_odds, rng)


def ctr(m: int, rng: np.random.Generator, features: int = 1_000_000) -> Block:
    """Return m rows of 40 features each, ascending and counted from 1."""
    values = features // FIELDS
    kind = rng.integers(0, KINDS, m)
    # Zipf's law: the logarithm of a value's rank is uniform.
    rank = (values ** rng.random((m, FIELDS), dtype=np.float32)).astype(np.int64) - 1
    rank[:, ::2] += (kind * (values // KINDS))[:, None]
    numbers = np.arange(FIELDS) * values + rank % values
    weights = np.random.default_rng(40).normal(0.0, 0.25, features)
    log_odds = -1.4 + weights[numbers].sum(axis=1)
    # A multiplier that shares no factor with the number of features permutes them.
    factor = next(f for f in range(611_953, 700_000) if math.gcd(f, features) == 1)
    return drawn(np.sort(numbers * factor % features, axis=1) + 1, log_odds, rng)


TABLES: dict[str, Callable[..., Block]] = {"susy": susy, "credit": credit, "ctr": ctr}


class Writer(Protocol):
    """A file of released rows."""

    def write(self, rows: Any, labels: npt.NDArray[np.int32]) -> None:
        """Append rows."""

    def close(self) -> None:
        """End the file."""


class ParquetFile:
    """A Parquet file of labels, with or without features; a row group a block."""

    def __init__(self, path: Path, declaration: str | None) -> None:
        self._path, self._writer = path, None
        self._metadata = {} if declaration is None else {"ldpaudit": declaration}

    def write(self, rows: Any, labels: npt.NDArray[Any]) -> None:
        """Append rows."""
        columns = [] if rows is None else list(rows.columns)
        names = [] if rows is None else rows.column_names
        table = pa.table([*columns, pa.array(labels)], [*names, "label"])
        table = table.replace_schema_metadata(self._metadata)
        if self._writer is None:
            few = [f.name for f in table.schema if not pa.types.is_floating(f.type)]
            self._writer = pq.ParquetWriter(self._path, table.schema, use_dictionary=few)
        self._writer.write_table(table)

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()


class SvmlightFile:
    """An svmlight text: label, then number:1 for each feature that a row has."""

    def __init__(self, path: Path, declaration: str) -> None:
        Path(f"{path}.ldpaudit.json").write_text(declaration)
        self._stream = path.open("wb")

    def write(self, rows: npt.NDArray[np.int64], labels: npt.NDArray[np.int32]) -> None:
        """Append rows."""
        offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
        words = pc.cast(pa.array(rows.ravel()), pa.string())
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, words), ":1 ")
        first = pc.cast(pa.array(labels), pa.string())
        lines = pc.binary_join_element_wise(first, " ", joined, ":1\n", "")
        self._stream.write(lines.buffers()[2])

    def close(self) -> None:
        """End the file."""
        self._stream.close()


def blocks(table: str, rows: int, seed: int, **options: int) -> Iterator[tuple[int, Block]]:
    for number, start in enumerate(range(0, rows, BLOCK)):
        rng = child_generator(seed, table, "rows", str(number))
        yield number, TABLES[table](min(BLOCK, rows - start), rng, **options)


def declaration(epsilon: float) -> str:
    mechanism = {"name": "randomized-response", "classes": list(CLASSES), "epsilon": epsilon}
    return json.dumps({"version": 1, "label": "label", "mechanism": mechanism})


def make(
    table: str,
    folder: Path,
    rows: int,
    epsilon: float = 1.0,
    seed: int = 0,
    eta: bool = False,
    **options: int,
) -> Path:
    """Write a release and what comes with it; return the release's path."""
    name = "-".join(str(word) for word in (table, rows, *options.values()))
    sparse = table == "ctr"
    released = folder / f"{name}.{'svm' if sparse else 'parquet'}"
    folder.mkdir(parents=True, exist_ok=True)
    writer: Writer = (SvmlightFile if sparse else ParquetFile)(released, declaration(epsilon))
    beside = {"truth": ParquetFile(folder / f"{name}.truth.parquet", None)}
    if eta:
        beside["eta"] = ParquetFile(folder / f"{name}.eta.parquet", None)
    mechanism = RandomizedResponse.from_epsilon(CLASSES, epsilon)
    for number, block in blocks(table, rows, seed, **options):
        noise = child_generator(seed, table, "noise", str(number))
        writer.write(block.rows, mechanism.sample(block.labels, noise))
        beside["truth"].write(None, block.labels)
        if eta:
            beside["eta"].write(None, block.eta)
    for file in (writer, *beside.values()):
        file.close()
    return released


def main() -> None:
    parser = argparse.ArgumentParser(description="Releases of any size.")
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--columns", type=int, help="of susy (18)")
    parser.add_argument("--features", type=int, help="of ctr (1000000)")
    parser.add_argument("--eta", action="store_true", help="write P(Y = 1 | x) too")
    asked = vars(parser.parse_args())
    options = {k: v for k in ("columns", "features") if (v := asked.pop(k)) is not None}
    print(make(**asked, **options))


if __name__ == "__main__":
    main()
