"""Memorisation: how often a generator is accused that copies its training rows, or saw none.

Usage: python benchmarks/memorisation.py DATA_FOLDER [--runs 200] [--rows 1000] [--only NAME …]

In every run as many training and held-out rows are drawn at random from one population, and as
many synthetic rows: other rows of the population, a share of them replaced by copies of random
training rows. Beside the test of pairs stand two that a user would pick instead: the same pairs
without the most one-sided ones on their own, and every synthetic row as a coin of its own (is its
closest record a training one?), all at 5 %.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import binom

from ldpaudit.estimators.metric import fit_metric
from ldpaudit.estimators.synthetic import MemorisationCounts, count_memorisation
from ldpaudit.release import FeatureTable, joined

LEVEL = 0.05
FALSE_ALARM = 1e-6
NOISE = 0.1
"""Standard deviation of the noise on copies, in standard deviations of the column."""
GENERATORS = (
    ("saw nothing", 0.0, 0.0),
    ("saw nothing, 20 rows in many copies", 0.0, 0.0),
    *((f"{share:.0%} copies", share, 0.0) for share in (0.01, 0.05, 0.2, 1.0)),
    *((f"{share:.0%} copies with noise", share, NOISE) for share in (0.01, 0.05, 0.2, 1.0)),
)
"""Name, share of copies, noise on them."""
POOL = 40_000

Codes = npt.NDArray[np.int32]


def table(numeric: npt.NDArray[np.floating], codes: Codes | None = None) -> FeatureTable:
    codes = np.zeros((len(numeric), 0), dtype=np.int32) if codes is None else codes
    sizes = tuple(int(column.max()) + 1 for column in codes.T)
    width = numeric.shape[1] + codes.shape[1]
    return FeatureTable(numeric.astype(np.float32), codes, sizes, width)


def numbers(_: Path) -> FeatureTable:
    """Eight columns, three Gaussian components."""
    rng = np.random.default_rng(0)
    centres = 2 * rng.standard_normal((3, 8))
    return table(centres[rng.integers(0, 3, POOL)] + rng.standard_normal((POOL, 8)))


def ties(_: Path) -> FeatureTable:
    """Three columns of few values: nearly every row has equals."""
    rng = np.random.default_rng(0)
    return table(rng.binomial((4, 6, 9), (0.3, 0.5, 0.4), (POOL, 3)).astype(np.float32))


def mixed(folder: Path) -> FeatureTable:
    """Adult without the sampling weight: 5 numeric and 8 categorical columns, duplicates."""
    rows = pq.read_table(folder / "adult.parquet")
    rows = rows.drop_columns(["income", "split", "fnlwgt"])
    plain = [pa.types.is_integer(kind) for kind in rows.schema.types]
    columns = [rows[name].combine_chunks() for name in rows.column_names]
    found = [np.asarray(c) for c, number in zip(columns, plain, strict=True) if number]
    codes = [
        np.unique(np.asarray(c.fill_null("?").to_pylist()), return_inverse=True)[1]
        for c, number in zip(columns, plain, strict=True)
        if not number
    ]
    return table(np.stack(found, axis=1), np.stack(codes, axis=1).astype(np.int32))


def images(folder: Path) -> FeatureTable:
    """MNIST 0 and 9, 784 pixels."""
    data = np.load(folder / "mnist.npz")
    chosen = (data["y_train"] == 0) | (data["y_train"] == 9)
    return table(data["x_train"][chosen].reshape(-1, 784) / 255)


POPULATIONS = {"numbers": numbers, "ties": ties, "mixed": mixed, "images": images}


def synthetic(
    other: FeatureTable,
    training: FeatureTable,
    name: str,
    share: float,
    noise: float,
    rng: np.random.Generator,
) -> FeatureTable:
    """Return what the generator makes: other rows, a share of them copies of training rows."""
    if "many" in name:
        return other.take(np.repeat(np.arange(20), len(other) // 20))
    copies = int(share * len(other))
    copied = training.take(rng.integers(0, len(training), copies))
    scale = noise * training.numeric.std(axis=0)
    moved = copied.numeric + scale * rng.standard_normal(copied.numeric.shape)
    own = FeatureTable(
        moved.astype(np.float32), copied.categorical, copied.cardinalities, copied.columns
    )
    return joined(own, other.take(np.arange(copies, len(other))))


def accusations(counts: MemorisationCounts) -> tuple[bool, bool, bool]:
    """Return who accuses: the test, all pairs alone, every synthetic row as a coin."""
    alone = binom.sf(counts.wins - 1, counts.decisive, 0.5) < LEVEL
    by_rows = binom.sf(counts.nearest_training - 1, counts.synthetic, 0.5) < LEVEL
    return counts.share_lower(LEVEL) > 0.5, bool(alone), bool(by_rows)


def one_run(population: FeatureTable, rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return for each generator who accuses it, int64 of shape (generators, 3)."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(population))[: 3 * rows].reshape(3, rows)
    training, held_out, other = (population.take(part) for part in drawn)
    metric = fit_metric(joined(training, held_out), "l2", rng=rng)
    sets = metric.transform(training), metric.transform(held_out)
    found = []
    for name, share, noise in GENERATORS:
        made = metric.transform(synthetic(other, training, name, share, noise, rng))
        found.append(accusations(count_memorisation(*sets, made, rng)))
    return np.asarray(found, dtype=np.int64)


def lines(folder: Path, names: list[str], runs: int, rows: int) -> Iterator[str]:
    limit = int(binom.isf(FALSE_ALARM, runs, LEVEL))
    yield f"{rows:,} training, held-out and synthetic rows each; accusations in {runs} runs at 5 %"
    yield f"(at most {limit} of a generator that saw nothing).\n"
    yield "| population | generator | accused | all pairs alone | row by row |"
    yield "|---|---|---:|---:|---:|"
    for population in names:
        pool = POPULATIONS[population](folder)
        total = sum(one_run(pool, rows, seed) for seed in range(runs))
        for (name, _, _), found in zip(GENERATORS, np.asarray(total), strict=True):
            yield f"| {population} | {name} | {found[0]} | {found[1]} | {found[2]} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--only", nargs="*", choices=POPULATIONS, default=list(POPULATIONS))
    given = parser.parse_args()
    for line in lines(given.folder, given.only, given.runs, given.rows):
        print(line, flush=True)


if __name__ == "__main__":
    main()
