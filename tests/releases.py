"""Small releases for tests, as files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ldpaudit.mechanisms import RandomizedResponse

_RANDOMNESS = b'"experimental generator"', b'"operating system"'
"""How a release declares that its noise is from a seed, and how one does that is published."""


def table(
    rows: int = 3000,
    *,
    made: float = 1.0,
    claimed: float | None = 1.0,
    classes: tuple[Any, ...] = ("no", "yes"),
    seed: int = 3,
    label: str = "label",
) -> tuple[pa.Table, pa.Table]:
    """Return a release (features x0…x2, a category, the released label) and its true labels."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(classes), rows).astype(np.int32)
    frame = pd.DataFrame({f"x{i}": codes + rng.standard_normal(rows) for i in range(3)})
    frame["town"] = rng.choice(["oslo", "rome", "bonn"], rows)
    released = RandomizedResponse.from_epsilon(classes, made).sample(codes, rng)
    frame[label] = [classes[code] for code in released]
    release = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata({})
    if claimed is not None:
        mechanism = {"name": "randomized-response", "classes": list(classes), "epsilon": claimed}
        content = {"version": 1, "label": label, "mechanism": mechanism}
        release = release.replace_schema_metadata({"ldpaudit": json.dumps(content)})
    return release, pa.table({label: [classes[code] for code in codes]})


def written(folder: Path, **options: Any) -> tuple[Path, Path]:
    """Write a release and its true labels; return both paths."""
    release, truth = table(**options)
    paths = folder / "release.parquet", folder / "truth.parquet"
    pq.write_table(release, paths[0])
    pq.write_table(truth, paths[1])
    return paths


def declare_as_released(folder: Path) -> None:
    """Have the releases of a folder that were drawn from a seed declare that they were not.

    Every audit says of such a release that it must not be published.
    """
    for path in folder.glob("*.parquet"):
        table = pq.read_schema(path)
        stated = {k: text.replace(*_RANDOMNESS) for k, text in (table.metadata or {}).items()}
        if stated != (table.metadata or {}):
            pq.write_table(pq.read_table(path).replace_schema_metadata(stated), path)
    for path in folder.glob("*.ldpaudit.json"):
        path.write_bytes(path.read_bytes().replace(*_RANDOMNESS))
