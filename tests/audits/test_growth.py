"""Time grows with the columns of a table, and not with their square."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ldpaudit
from ldpaudit.datasets.reading import read_release
from ldpaudit.mechanisms import RandomizedResponse

CLAIM = RandomizedResponse.from_epsilon((0, 1), 1.0)
FEW, MANY = 4_000, 16_000
MOST = 6.0
"""Four times the columns in so many times the time; by a square it would be sixteen times."""


def seconds(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def written(path: Path, columns: int, rows: int = 200) -> np.ndarray:
    rng = np.random.default_rng(columns)
    truth = rng.integers(0, 2, rows).astype(np.int32)
    numbers = {f"c{place}": rng.normal(size=rows) for place in range(columns)}
    pq.write_table(pa.table({"label": CLAIM.sample(truth, rng), **numbers}), path)
    return truth


@pytest.mark.validate
def test_each_further_column_costs_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDPAUDIT_EFFORT", "small")
    read, audited = {}, {}
    for columns in (300, FEW, MANY):  # The first imports what is needed.
        path = tmp_path / f"{columns}.parquet"
        truth = written(path, columns)
        read[columns] = seconds(partial(read_release, path))
        audited[columns] = seconds(partial(ldpaudit.audit, path, truth, CLAIM, threads=1))
    assert read[MANY] < MOST * read[FEW]
    assert audited[MANY] < MOST * audited[FEW]
