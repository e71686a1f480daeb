"""Small tables with true labels, and the command line in this process."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from processes import called

from ldpaudit.datasets import parse_declaration

ran = partial(called, "privatize")
ROWS = 1000


def frame(rows=ROWS, seed=1):
    """Return features and three true labels: words, whole numbers 0 … 10, and booleans."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, rows)
    return pd.DataFrame(
        {
            "x": rng.standard_normal(rows) + codes,
            "town": rng.choice(["oslo", "rome", "bonn"], rows),
            "label": np.array(["no", "perhaps", "yes"])[codes],
            "count": rng.integers(0, 100, rows),
            "weeks": rng.integers(0, 11, rows),
            "flag": rng.integers(0, 2, rows).astype(bool),
        }
    )


def audit(*words):
    return called("run", *words, "--only", "mechanism", "--only", "power", "--quiet")[0]


@pytest.fixture
def data(tmp_path):
    """The table as a Parquet file, in a folder of its own."""
    path = tmp_path / "data.parquet"
    frame().to_parquet(path)
    return path


def declared(path):
    """Return the declaration inside a release."""
    return parse_declaration(pq.read_schema(path).metadata[b"ldpaudit"])


def declared_json(path):
    """Return the declaration as it is written."""
    return json.loads(pq.read_schema(path).metadata[b"ldpaudit"])
