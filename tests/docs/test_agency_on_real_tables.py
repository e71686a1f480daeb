"""The agency's year on public tables: audited, found wanting, advised, released, passed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from docs.blocks import EXAMPLES, run_page

pytestmark = [pytest.mark.real_data, pytest.mark.validate]
PEOPLE = 6000
EPSILON = 0.5
TABLES = {
    "adult": (["age", "education_num", "hours_per_week"], ["income", "sex", "married"]),
    "diabetes130": (
        ["age", "time_in_hospital", "num_medications", "gender"],
        ["readmitted", "change", "diabetesMed"],
    ),
}
"""Public and private columns of each table."""
PAGE = """
```console
$ ldpaudit declare careless.csv --label {0} --label {1} --label {2} --mechanism rr --epsilon 0.5
… declares 3 private columns …
$ ldpaudit run careless.csv --truth 2025.csv --id person --policy agency.toml  # exit status 1
Publish: no. …
Violation found: the 3 columns together claim ε = 1.500, but at least ε = … is certified …
fail claimed-channel: the noise of one column goes along with another's …
$ ldpaudit advise 2025.csv --label {0} --label {1} --label {2} --policy agency.toml \\
    --keep person --minutes 0.5
Release …
```
"""
RELEASED = """
<!-- with: LDPAUDIT_SEED={year} -->
```console
$ ldpaudit privatize {year}.csv -o {year}.parquet --label {0}:rr:epsilon=0.5 \\
    --label {1}:rr:epsilon=0.5 --label {2}:rr:epsilon=0.5 --keep person --id person \\
    --remember answers.parquet
Releasing all 3 reveals up to ε = 1.5 nats about a person. …
$ ldpaudit run {year}.parquet --truth {year}.csv --id person --policy agency.toml
Publish: yes. …
```
"""
YEARS = """
One of three private columns is audited: nothing is wrong with it, but that is no decision yet.

```console
$ ldpaudit run 2025.parquet 2026.parquet --id person --label {0} --answers remembered \\
    --truth 2025.csv --truth 2026.csv --policy agency.toml
Publish: not yet. …
No violation found: nothing contradicts the claimed ε = 0.500 of the 2 releases together …
```
"""


@pytest.mark.parametrize("name", TABLES)
def test_an_agencys_year(name: str, shared_data: Path, tmp_path: Path) -> None:
    public, private = TABLES[name]
    table = pd.read_parquet(shared_data / f"{name}.parquet").sample(PEOPLE, random_state=1)
    table["married"] = table.get("marital_status", pd.Series("", table.index)).str[:7] == "Married"
    table = table[[*public, *private]].astype(dict.fromkeys(private, str))
    table.insert(0, "person", [f"P{number}" for number in range(PEOPLE)])
    table[: PEOPLE * 9 // 10].to_csv(tmp_path / "2025.csv", index=False)
    table[PEOPLE // 10 :].to_csv(tmp_path / "2026.csv", index=False)
    careless(table[: PEOPLE * 9 // 10], private).to_csv(tmp_path / "careless.csv", index=False)
    (tmp_path / "agency.toml").write_text((EXAMPLES / "agency.toml").read_text())
    run_page(PAGE.format(*private), tmp_path)
    for year in (2025, 2026):
        run_page(RELEASED.format(*private, year=year), tmp_path)
    run_page(YEARS.format(*private), tmp_path)


def careless(table: pd.DataFrame, private: list[str]) -> pd.DataFrame:
    """Return a table released with one random number for a whole row."""
    rng = np.random.default_rng(1)
    noisy, shared = table.copy(), rng.random(len(table))
    for column in private:
        codes, classes = pd.factorize(table[column], sort=True)
        other = (codes + rng.integers(1, len(classes), len(table))) % len(classes)
        keep = shared < np.exp(EPSILON) / (np.exp(EPSILON) + len(classes) - 1)
        noisy[column] = classes[np.where(keep, codes, other)]
    return noisy
