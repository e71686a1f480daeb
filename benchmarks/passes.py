"""What a pass over the labels of a very large release costs, and what Dask workers make of it."""

import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.runner import Array, Rows, case, heads, ran

BLOCK: Final = 4_000_000
"""Rows of a piece of the files, which is what one task reads."""
LAGS: Final = 8
"""Distances at which the noise of two rows is compared."""
CLASSES: Final = 4
RELEASED, TRUE = "released.parquet", "true.parquet"


def make(folder: Path, rows: int) -> None:
    """Write the labels of a release by randomized response, and the true ones."""
    rng = np.random.default_rng(1)
    schemas = {name: pa.schema({"label": pa.int8()}) for name in (RELEASED, TRUE)}
    writers = {name: pq.ParquetWriter(folder / name, schema) for name, schema in schemas.items()}
    for start in range(0, rows, BLOCK):
        size = min(BLOCK, rows - start)
        truth = rng.integers(0, CLASSES, size, dtype=np.int8)
        drawn = rng.integers(0, CLASSES, size, dtype=np.int8)
        released = np.where(rng.random(size) < 0.5, truth, drawn)
        for name, values in ((RELEASED, released), (TRUE, truth)):
            table = pa.table({"label": values}, schema=schemas[name])
            writers[name].write_table(table, row_group_size=BLOCK)
    for writer in writers.values():
        writer.close()


def counted(folder: str, piece: int) -> tuple[Array, Array, Array]:
    """Return what one piece of the rows adds to the counts of a pass, and its edges.

    The counts are those of true by released labels, of shape (k, k), and how often both rows of a
    pair are noisy, of shape (``LAGS``,). The edges are the noise of the first and last rows, of
    shape (2, ``LAGS``), with which pairs across pieces are counted.
    """
    read = [
        pq.ParquetFile(f"{folder}/{name}").read_row_group(piece).column(0).to_numpy()
        for name in (TRUE, RELEASED)
    ]
    truth, released = read
    cells = truth.astype(np.int16) * CLASSES + released
    joint = np.bincount(cells, minlength=CLASSES**2).reshape(CLASSES, CLASSES)
    noisy = truth != released
    pairs = [np.count_nonzero(noisy[lag:] & noisy[:-lag]) for lag in range(1, LAGS + 1)]
    return joint, np.array(pairs), np.array([noisy[:LAGS], noisy[-LAGS:]])


def together(pieces: list[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """Return the counts of all pieces, with the pairs of rows across them."""
    joint = np.sum([piece[0] for piece in pieces], axis=0)
    pairs = np.sum([piece[1] for piece in pieces], axis=0)
    for (_, _, before), (_, _, after) in itertools.pairwise(pieces):
        for lag in range(1, LAGS + 1):
            pairs[lag - 1] += np.count_nonzero(before[1][-lag:] & after[0][:lag])
    return joint, pairs


def in_one_process(folder: str) -> tuple[Array, Array]:
    """Count piece by piece."""
    pieces = pq.ParquetFile(f"{folder}/{TRUE}").num_row_groups
    return together([counted(folder, piece) for piece in range(pieces)])


def by_workers(folder: str) -> tuple[Array, Array]:
    """Let two Dask workers of this machine count the pieces, started as ``--cluster local:2``."""
    from ldpaudit.work.cluster import open_cluster

    pieces = pq.ParquetFile(f"{folder}/{TRUE}").num_row_groups
    with open_cluster("local:2", Path(folder)) as pool:
        client: Any = pool.client
        return together(client.gather(client.map(counted, [folder] * pieces, range(pieces))))


def by_pandas(folder: str) -> tuple[Array, Array]:
    """Count as a user of pandas would: both columns as a whole."""
    truth, released = (pd.read_parquet(f"{folder}/{name}")["label"] for name in (TRUE, RELEASED))
    joint = pd.crosstab(truth, released).to_numpy()
    noisy = truth != released
    pairs = [int((noisy & noisy.shift(lag, fill_value=False)).sum()) for lag in range(1, LAGS + 1)]
    return joint, np.array(pairs)


WAYS: Final[dict[str, Callable[[str], tuple[Array, Array]]]] = {
    "one process, piece by piece": in_one_process,
    "local:2, piece by piece": by_workers,
    "pandas, columns as a whole": by_pandas,
}


@case("label_passes", rows=200_000)
def passes(rows: int = 100_000_000, repeats: int = 3) -> Rows:
    """What does one pass over released and true labels cost, alone, on workers, and with pandas?

    Labels of 4 classes in two Parquet files in pieces of 4 million rows. A pass counts true by
    released labels, and pairs of noisy rows at 8 distances: what bounds on ε and the tests of the
    noise ask of all rows. Each way is a process of its own; seconds are those of the pass, without
    starting Python; memory is that of all its processes.
    """
    yield heads(
        f"{rows:,} rows",
        "pass, s, median|.1f",
        "with the start, s|.1f",
        "CPU s|.1f",
        "peak GiB|.2f",
    )
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), rows)
        found = set()
        for way in WAYS:
            done, passed = [], []
            for _ in range(repeats):
                done.append(ran(sys.executable, "-m", "benchmarks.passes", way, name))
                seconds, digest = done[-1].said.split()[-2:]
                passed.append(float(seconds))
                found.add(digest)
            middle = sorted(done, key=lambda one: one.wall)[len(done) // 2]
            yield way, sorted(passed)[repeats // 2], middle.wall, middle.used, middle.peak
    if len(found) > 1:
        raise SystemExit("The ways count differently.")


if __name__ == "__main__":
    start = time.perf_counter()
    counts = WAYS[sys.argv[1]](sys.argv[2])
    digest = "-".join(str(count) for part in counts for count in part.reshape(-1))
    print(time.perf_counter() - start, digest)
