"""Yearly files of the same people, with true labels beside them, for tests."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from ldpaudit.datasets import declare, write_release
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Declaration

CLASSES = ("no", "yes")


@dataclass(frozen=True)
class Years:
    """Tables of two or more years, and the true labels of each with the ids."""

    tables: tuple[pa.Table, ...]
    truths: tuple[pd.DataFrame, ...]

    def written(self, folder: Path) -> tuple[list[str], list[str]]:
        """Write them; return the paths of releases and of true labels."""
        paths: tuple[list[str], list[str]] = ([], [])
        for year, (table, truth) in enumerate(zip(self.tables, self.truths, strict=True), 1):
            paths[0].append(str(folder / f"y{year}.parquet"))
            paths[1].append(str(folder / f"y{year}.truth.csv"))
            write_release(table, paths[0][-1])
            truth.to_csv(paths[1][-1], index=False)
        return paths


def years(
    noise: str = "fresh",
    *,
    n: int = 1_200,
    releases: int = 2,
    epsilon: float = 1.0,
    changing: float = 0.1,
    leaving: int = 0,
    claim: float | None = None,
) -> Years:
    """Make files of several years.

    ``noise``: fresh, remembered or reused; ``leaving``: people of each year who are in no other;
    ``claim``: the declared ε, where it is not the true one.
    """
    rng = np.random.default_rng(7)
    ids = np.array([f"P{number}" for number in rng.permutation(10 * n)[:n]], dtype=object)
    age = rng.integers(18, 90, n).astype(float)
    region = rng.choice(["north", "south"], n)
    mechanism = RandomizedResponse.from_epsilon(CLASSES, epsilon)
    truth = (rng.random(n) < 0.3 + 0.3 * (age > 50)).astype(np.int32)
    tables, truths, released = [], [], truth
    for year in range(releases):
        before = truth
        if year:
            truth = np.where(rng.random(n) < changing, 1 - truth, truth).astype(np.int32)
        seed = 11 if noise == "reused" else 11 + year
        drawn = mechanism.sample(truth, np.random.default_rng(seed))
        kept = (noise == "remembered") & (truth == before) & (year > 0)
        released = np.where(kept, released, drawn)
        order = rng.permutation(n) if noise != "reused" else np.arange(n)
        here = ids.copy()
        here[:leaving] = [f"only{year}-{one}" for one in range(leaving)]
        names = np.array(CLASSES)
        columns = {"person": here, "age": age + year, "region": region}
        table = pa.table({name: column[order] for name, column in columns.items()})
        table = table.append_column("label", pa.array(names[released[order]]))
        stated = {"classes": list(CLASSES), "epsilon": claim or epsilon}
        tables.append(declare(table, Declaration("randomized-response", stated), "label"))
        truths.append(pd.DataFrame({"person": here[order], "label": names[truth[order]]}))
    return Years(tuple(tables), tuple(truths))
