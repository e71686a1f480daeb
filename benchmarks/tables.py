"""Releases of any number of rows, made block by block in constant memory, with known P(y = 1 | x).

Rows come in blocks of a fixed size, each with generators of its own, so the first rows of a larger
table are those of a smaller one. Labels and noise come from different streams: a seed that both
share is a fault, which an audit rightly finds.
"""

import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.planted import declaration
from benchmarks.runner import Array, Rng
from ldpaudit.datasets import declare
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.randomness import child_generator

BLOCK = 100_000
PRIOR: Final = 0.457
FIELDS, KINDS = 40, 50

Block = tuple[Any, Array, Array]
"""Rows (a pyarrow table or, for svmlight, integers of shape (m, 40)), P(y = 1 | x), labels."""


def susy(m: int, rng: Rng, columns: int = 18) -> Block:
    """Return rows of two classes of three Gaussians each; only the first 18 columns tell of them.

    P(y = 1) = .457, and the best guess from x alone is right in about 80 of 100 rows, as for the
    SUSY data.
    """
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
    return pa.table(list(np.ascontiguousarray(points.T)), names), eta, labels


def credit(m: int, rng: Rng) -> Block:
    """Return 23 mixed columns of a bank's table: whether somebody will be late with a payment."""
    late = rng.standard_normal(m)
    delays = [
        np.clip(np.rint(late + rng.normal(-0.6, 0.8, m)), -2, 8).astype(int) for _ in range(6)
    ]
    limit = np.round(np.exp(rng.normal(11.6 - 0.3 * late, 0.8)), -4) + 10_000
    bills = [np.rint(limit * rng.beta(1.2, 2.0, m)) for _ in range(6)]
    paid = [np.rint(bill * rng.beta(1.0, 8.0 + 4 * (late > 0))) for bill in bills]
    levels = ["school", "university", "graduate", "other"]
    education = rng.choice(levels, m, p=[0.17, 0.47, 0.34, 0.02])
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
    eta = 1 / (1 + np.exp(1.6 - 0.9 * delays[0] - 0.3 * delays[1] + wealth))
    return pa.table(columns), eta, (rng.random(m) < eta).astype(np.int32)


def ctr(m: int, rng: Rng, features: int = 1_000_000) -> Block:
    """Return rows of 40 features each, ascending and counted from 1.

    Each field names one feature of its own by Zipf's law, half of the fields those that one of 50
    kinds of users prefers; features are numbered by a hash.
    """
    values = features // FIELDS
    kind = rng.integers(0, KINDS, m)
    # Zipf's law: the logarithm of a value's rank is uniform.
    rank = (values ** rng.random((m, FIELDS), dtype=np.float32)).astype(np.int64) - 1
    rank[:, ::2] += (kind * (values // KINDS))[:, None]
    numbers = np.arange(FIELDS) * values + rank % values
    weights = np.random.default_rng(40).normal(0.0, 0.25, features)
    eta = 1 / (1 + np.exp(1.4 - weights[numbers].sum(axis=1)))
    # A multiplier that shares no factor with the number of features permutes them.
    factor = next(f for f in range(611_953, 700_000) if math.gcd(f, features) == 1)
    rows = np.sort(numbers * factor % features, axis=1) + 1
    return rows, eta, (rng.random(m) < eta).astype(np.int32)


def forest(m: int, rng: Rng) -> Block:
    """Return 54 columns like those of a map: 10 measurements, and which of 44 kinds a place is.

    Seven classes, of which the two most frequent have 85 % of the rows, as for Covertype.
    """
    measured = rng.standard_normal((m, 10))
    kind = (40 * rng.beta(1.0, 3.0, m)).astype(np.int64)
    area = rng.integers(0, 4, m)
    # The same whatever the seed of the rows.
    fixed = np.random.default_rng(54)
    weights, by_kind = fixed.normal(0.0, 0.7, (10, 7)), fixed.normal(0.0, 1.0, (40, 7))
    scores = measured @ weights + by_kind[kind] + np.array([5.5, 6.0, 2.5, -1.0, 0.0, 1.0, 1.5])
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    drawn = (rng.random(m)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    columns = {f"measured_{i}": np.rint(500 * x).astype(int) for i, x in enumerate(measured.T)}
    columns |= {f"area_{i}": (area == i).astype(int) for i in range(4)}
    columns |= {f"kind_{i}": (kind == i).astype(int) for i in range(40)}
    return pa.table(columns), chances[:, 1], np.minimum(drawn, 6).astype(np.int32)


TABLES: dict[str, Any] = {"susy": susy, "credit": credit, "ctr": ctr, "forest": forest}
# The classes of those that have more than two.
CLASSES: dict[str, int] = {"forest": 7}


def svmlight(rows: Array, labels: Array) -> Any:
    """Return lines of a label, then number:1 for each feature that a row has, as a buffer."""
    offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
    words = pc.cast(pa.array(rows.ravel()), pa.string())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, words), ":1 ")
    first = pc.cast(pa.array(labels), pa.string())
    return pc.binary_join_element_wise(first, " ", joined, ":1\n", "").buffers()[2]


def make(
    table: str,
    folder: Path,
    rows: int,
    *,
    epsilon: float = 1.0,
    seed: int = 0,
    eta: bool = False,
    claimed: bool = True,
    **options: int,
) -> Path:
    """Write a release by randomized response, NAME.truth.parquet and, if asked, NAME.eta.parquet.

    Not ``claimed``: true labels without a declaration. NAME is the table and its rows; svmlight
    has its declaration beside it. Returns the release's path.
    """
    name = "-".join(str(word) for word in (table, rows, *options.values()))
    path = folder / f"{name}.{'svm' if table == 'ctr' else 'parquet'}"
    classes = tuple(range(CLASSES.get(table, 2)))
    mechanism = RandomizedResponse.from_epsilon(classes, epsilon)
    claim = declaration(classes, epsilon)
    with ExitStack() as files:
        writers: dict[Path, Any] = {}

        def append(file: Path, part: pa.Table) -> None:
            if file not in writers:
                few = [f.name for f in part.schema if not pa.types.is_floating(f.type)]
                writer = pq.ParquetWriter(file, part.schema, use_dictionary=few)
                writers[file] = files.enter_context(writer)
            writers[file].write_table(part)

        if table == "ctr":
            stream = files.enter_context(path.open("wb"))
            content = {"version": 1, "label": "label"}
            content |= {"mechanism": {"name": claim.name, **claim.parameters}}
            path.with_name(f"{path.name}.ldpaudit.json").write_text(json.dumps(content))
        for number, start in enumerate(range(0, rows, BLOCK)):
            own, noise = (child_generator(seed, table, w, str(number)) for w in ("rows", "noise"))
            block, chance, labels = TABLES[table](min(BLOCK, rows - start), own, **options)
            drawn = mechanism.sample(labels, noise) if claimed else labels
            if table == "ctr":
                stream.write(svmlight(block, drawn))
            else:
                part = block.append_column("label", pa.array(drawn))
                append(path, declare(part, claim, "label") if claimed else part)
            append(folder / f"{name}.truth.parquet", pa.table({"label": labels}))
            if eta:
                append(folder / f"{name}.eta.parquet", pa.table({"label": chance}))
    return path
