"""The tables, priors, channels and policies that the invocations name, drawn from fixed seeds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = np.array(["no", "perhaps", "yes"])
PAIR = np.array(["no", "yes"])

TEXTS = {
    "prior.csv": "label,probability\nno,0.5\nperhaps,0.3\nyes,0.2\n",
    "weeks.csv": "label,probability\n0,0.5\n" + "".join(f"{i},0.05\n" for i in range(1, 11)),
    "channel.csv": ",low,high\nno,0.75,0.25\nyes,0.25,0.75\n",
    "lopsided.csv": ",no,yes\nno,0.7,0.3\nyes,0.1,0.9\n",
    "bad_channel.csv": ",no,yes\nno,0.7,0.4\nyes,0.1,0.9\n",
    "policy.toml": """schema = 1
extends = "ldpaudit:default"
[audit]
seed = 11
confidence = 0.9
[checks.instance-loss-exceedance]
at = 1.0
max = 0.05
[checks.label-inference-advantage]
level = "warn"
max = 0.01
[checks.label-inference-accuracy]
max = 0.99
[checks.renyi-epsilon]
max = 0.2
""",
    "claim.toml": 'schema = 1\nextends = "ldpaudit:default"\n[claim]\nepsilon = 0.2\n',
    "bad.toml": "schema = 1\n[checks.claimed-epsilom]\n",
    "client.py": """import numpy as np

def grr(value, n, rng):
    keep = rng.random(n) < np.expm1(1) / (np.e + 4)
    return np.where(keep, value, rng.integers(0, 5, n))

def unary(value, n, rng):
    bits = rng.random((n, 5)) < 1 / (np.exp(0.5) + 1)
    bits[:, value] = rng.random(n) < np.exp(0.5) / (np.exp(0.5) + 1)
    return bits

def leaky(value, n, rng):
    return np.where(rng.random(n) < 0.8, value, rng.integers(0, 5, n))

def noisy(value, n, rng):
    return value + rng.laplace(size=n)
""",
}


def _save(
    folder: Path, name: str, columns: dict[str, Any], claim: dict[str, Any] | None = None
) -> None:
    """Write a table; with ``claim`` as a release that declares this mechanism."""
    table = pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)
    content = json.dumps({"version": 1, "label": "label", "mechanism": claim})
    metadata = None if claim is None else {"ldpaudit": content}
    pq.write_table(table.replace_schema_metadata(metadata), folder / f"{name}.parquet")


def _people(rows: int, seed: int, names: np.ndarray) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(names), rows)
    features = {f"x{i}": codes + rng.standard_normal(rows) for i in range(2)}
    return features | {"town": rng.choice(["oslo", "rome", "bonn"], rows), "label": names[codes]}


def _numbers(rows: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    weeks = rng.integers(0, 11, rows)
    return {"x": weeks + 2 * rng.standard_normal(rows), "y": rng.random(rows), "label": weeks}


def _cells(folder: Path, rows: int = 800) -> None:
    """People in 25 cells of equal features, their model P(label | x), and canaries among them."""
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 5, (2, rows)).astype(float)
    chance = 1 / (1 + np.exp(2 - a - 0.5 * (b - 2)))
    drawn = np.arange(rows) < 300
    labels = (rng.random(rows) < np.where(drawn, 0.5, chance)).astype(int)
    _save(folder, "cells", {"a": a, "b": b, "label": labels})
    c, d = rng.integers(0, 5, (2, rows)).astype(float)  # Of other people.
    public = rng.random(rows) < 1 / (1 + np.exp(2 - c - 0.5 * (d - 2)))
    _save(folder, "cells_public", {"a": c, "b": d, "label": public.astype(int)})
    pd.DataFrame({"0": 1 - chance, "1": chance}).to_csv(folder / "posterior.csv", index=False)
    half = np.where(drawn, 0.5, np.nan)
    pd.DataFrame({"0": half, "1": half}).to_csv(folder / "canaries.csv", index=False)


def _bags(folder: Path, bags: int = 150, size: int = 4) -> None:
    """Sums of bags, with and without noise, declared as label-proportions."""
    rng = np.random.default_rng(9)
    rows = bags * size
    x = rng.standard_normal(rows)
    labels = (rng.random(rows) < 1 / (1 + np.exp(-x))).astype(int)
    ward = rng.permutation(np.repeat(np.arange(bags), size))
    sums = np.bincount(ward, labels, bags)
    chance = 1 - np.exp(-1)
    noise = rng.geometric(chance, bags) - rng.geometric(chance, bags)
    claim = {"name": "label-proportions", "bag": "ward", "classes": PAIR.tolist()}
    columns = {"x": x, "ward": ward}
    _save(folder, "shares", columns | {"label": (sums / size)[ward]}, claim)
    more = {"statistic": "sum", "noise": "geometric", "epsilon": 1.0}
    _save(folder, "sums", columns | {"label": (sums + noise)[ward]}, claim | more)
    _save(folder, "bag_truth", {"label": PAIR[labels]})


def _reports(folder: Path, rows: int = 600) -> None:
    """Reports of frequency oracles at ε = 1; those of local hashing say nothing."""
    rng, k = np.random.default_rng(10), 4
    codes = rng.integers(0, k, rows)
    names = np.array(["a", "b", "c", "d"])
    own = np.eye(k, dtype=bool)[codes]
    unary = rng.random((rows, k)) < np.where(own, 0.5, 1 / (np.e + 1))
    noisy = own + rng.laplace(scale=2.0, size=(rows, k))
    grr = np.where(rng.random(rows) < (np.e - 1) / (np.e + k - 1), codes, rng.integers(0, k, rows))
    keys = np.where(own, np.where(rng.random((rows, 1)) < np.e / (np.e + 3), -1.0, 2.0), 0.5)
    reports: dict[str, Any] = {
        "GRR": names[grr],
        "SS": [[names[i]] for i in (keys + rng.random((rows, k)) / 9).argmin(axis=1)],
        "OUE": unary.astype(int).tolist(),
        "SHE": noisy.tolist(),
        "OLH": np.column_stack([rng.integers(0, 2**31, rows), rng.integers(0, 4, rows)]).tolist(),
    }
    for protocol, column in reports.items():
        claim = {"name": "frequency-oracle", "protocol": protocol, "classes": names.tolist()}
        claim |= {"epsilon": 1.0}
        columns = {"x": codes + rng.standard_normal(rows), "label": column}
        _save(folder, protocol.lower(), columns, claim)
    _save(folder, "report_truth", {"label": names[codes]})


def write_inputs(folder: Path) -> None:
    """Write every input into the folder."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    _save(folder, "words", _people(600, 1, WORDS))
    _save(folder, "pairs", _people(600, 2, PAIR))
    _save(folder, "public", _people(500, 3, PAIR))
    _save(folder, "held", _people(300, 4, PAIR))
    _save(folder, "ints", _people(600, 5, np.array([0, 1])))
    _save(folder, "weeks", _numbers(600, 6))
    _save(folder, "weeks_test", _numbers(400, 7))
    _cells(folder)
    _bags(folder)
    _reports(folder)
    told = _people(400, 11, PAIR)
    _save(folder, "told", told | {"copy": told["label"]})
    kept = _people(600, 2, PAIR)
    rng = np.random.default_rng(12)
    kept["label"] = np.where(rng.random(600) < 0.95, kept["label"], "no")
    claim = {"name": "randomized-response", "classes": PAIR.tolist(), "epsilon": 0.5}
    _save(folder, "lying", kept, claim)
    ids = pd.DataFrame({"who": np.arange(400) + 10, **told})
    ids[["who", "label"]][::-1].to_csv(folder / "ids_truth.csv", index=False)
    said = ids["label"].where(rng.random(400) < 0.9, "no")
    ids.assign(label=said).to_csv(folder / "ids.csv", index=False)


REAL = {
    "adult": ("age", "education", "hours_per_week", "sex", "income"),
    "diabetes130": ("time_in_hospital", "num_medications", "gender", "age", "readmitted"),
    "fertility": None,
    "skin": None,
}


def write_real(data: Path, folder: Path) -> None:
    """Write 1,200 rows of some columns of each public table, spread over the whole of it."""
    for name, columns in REAL.items():
        frame = pd.read_parquet(data / f"{name}.parquet", columns=columns and list(columns))
        rows = frame.iloc[np.linspace(0, len(frame) - 1, 1200).astype(int)]
        rows.reset_index(drop=True).to_parquet(folder / f"{name}.parquet")
