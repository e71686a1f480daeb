"""Releases of one small population: by randomized response, and by double randomized response."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.mechanisms import RandomizedResponse

CLASSES = ("no", "yes")
ROWS = 1500


def people(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.integers(0, 2, n).astype(np.int32)
    return (2 * labels - 1)[:, None] * 0.8 + rng.standard_normal((n, 3)), labels


def written(
    path: Path, features: np.ndarray | None, codes: np.ndarray, mechanism: dict[str, Any] | None
) -> Path:
    columns = {} if features is None else {f"x{i}": v for i, v in enumerate(features.T)}
    frame = pd.DataFrame(columns | {"label": [CLASSES[code] for code in codes]})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    content = {"version": 1, "label": "label", "mechanism": mechanism}
    metadata = {} if mechanism is None else {"ldpaudit": json.dumps(content)}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


@dataclass(frozen=True)
class Files:
    """The files of one population, λ = 0.5."""

    folder: Path
    rr: Path
    double: Path
    weak: Path
    truth: Path
    test: Path
    synthetic: Path


def make(folder: Path, seed: int = 1, rows: int = ROWS) -> Files:
    rng = np.random.default_rng(seed)
    features, labels = people(rows, rng)
    fake, asked = people(rows, rng)
    test_features, test_labels = people(2000, rng)
    plain = {"name": "randomized-response", "classes": list(CLASSES)}
    drawn = DoubleRR(CLASSES, 0.5).sample(labels, asked, rng)
    replaced = (drawn.synthetic_rows >= 0)[:, None]
    both = np.where(replaced, fake[drawn.synthetic_rows], features)
    released = {
        noise: RandomizedResponse(CLASSES, noise).sample(labels, rng) for noise in (0.5, 0.1)
    }
    return Files(
        folder,
        written(folder / "rr.parquet", features, released[0.5], plain | {"lambda": 0.5}),
        written(
            folder / "double.parquet",
            both,
            drawn.labels,
            {"name": "double-rr", "classes": list(CLASSES), "lambda": 0.5},
        ),
        written(folder / "weak.parquet", features, released[0.1], plain | {"lambda": 0.1}),
        written(folder / "truth.parquet", None, labels, None),
        written(folder / "test.parquet", test_features, test_labels, None),
        written(folder / "synthetic.parquet", fake, asked, None),
    )
