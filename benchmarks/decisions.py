"""How often releases with a known answer get exit status 1, or may be published.

    python benchmarks/decisions.py DATA OUT.jsonl DRAWS [KIND …]

Draws releases of public tables and of made-up people, audits each with its true labels, and prints
a Markdown table. OUT gets a line for each, with the reason. DATA is the folder with adult,
diabetes130, fertility and skin. Faults are drawn by zoo.py.
"""

import json
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ldpaudit
from ldpaudit.commands.selftest.planting import people
from ldpaudit.estimators.intervals.binomial import clopper_pearson

DATA = Path(sys.argv[1])
LABELS = ("adult.income", "adult.sex", "adult.relationship", "adult.marital_status")
LABELS += ("diabetes130.readmitted", "diabetes130.gender", "fertility.morekids", "skin.label")
NUMBERS = ("adult.hours_per_week", "diabetes130.time_in_hospital", "fertility.work")
MADE_UP = "made up."
TOP = 13
NUMERIC = ("laplace", "discrete-laplace", "exponential", "staircase", "discrete-staircase")
NUMERIC += ("debiased-rr", "optimal-unbiased", "rr-on-bins")

Release = tuple[pd.DataFrame, np.ndarray, dict[str, Any]]
"""A release, its true labels, and what the audit is given."""
read = cache(pd.read_parquet)


def persons(
    rng: np.random.Generator, numeric: bool = False, least: float = 0.0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw features and true labels as codes; each class has at least a share of the rows."""
    n = int(rng.integers(1500, 4000) if rng.random() < 0.9 else rng.choice([8000, 13_500]))
    name, label = str(rng.choice([*(NUMBERS if numeric else LABELS), MADE_UP])).split(".")
    if not label:
        made = people(n, TOP + 1 if numeric else int(rng.choice([2, 3, 5])), rng)
        frame, codes = made.frame, made.codes.astype(np.int64)
    else:
        rows = read(DATA / f"{name}.parquet").sample(n, random_state=int(rng.integers(2**31)))
        rows = rows.sort_index() if rng.random() < 0.5 else rows
        codes = pd.factorize(rows[label], sort=True)[0]
        step = {"hours_per_week": 8, "work": 4}.get(label, 1)
        codes = np.minimum(rows[label].to_numpy() // step, TOP) if numeric else codes
        frame = rows.drop(columns=label).reset_index(drop=True)
    if np.bincount(codes).min() < least * n:
        return persons(rng, numeric, least)
    some = np.sort(rng.permutation(frame.shape[1])[: int(rng.integers(3, 9))])
    return frame.iloc[:, some].rename(columns={"label": "a label"}), codes


def response(codes: np.ndarray, k: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    kept = rng.random(len(codes)) < np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    return np.where(kept, codes, (codes + rng.integers(1, k, len(codes))) % k)


def claim(k: int, epsilon: float) -> dict[str, Any]:
    return {"mechanism": {"name": "rr", "epsilon": epsilon, "classes": list(range(k))}}


def plain(rng: np.random.Generator) -> Release:
    """Release labels by some mechanism, as it claims."""
    name, epsilon = (
        str(rng.choice(["rr"] * 6 + ["rr-top-k", *NUMERIC])),
        float(rng.choice([0.5, 1, 1.5, 2, 3])),
    )
    frame, codes = persons(rng, name in NUMERIC)
    k = int(codes.max()) + 1
    if name == "rr":
        return frame.assign(label=response(codes, k, epsilon, rng)), codes, claim(k, epsilon)
    given = {"labels": f"0:{TOP}:1"} if name in NUMERIC else {}
    given |= {"private_prior": epsilon / 3} if name in ("rr-top-k", "rr-on-bins") else {}
    table = frame.assign(label=codes)
    return ldpaudit.privatize(table, name, epsilon=epsilon, **given), codes, {}


def changed(kind: str, rng: np.random.Generator) -> Release:
    """Release labels by randomized response, and use or change the released labels afterwards."""
    (frame, codes), epsilon = persons(rng, least=0.03), float(rng.choice([0.5, 1, 2]))
    n, k = len(codes), int(codes.max()) + 1
    if kind == "moving averages":  # The true label is mostly that of the row before.
        new = np.where(rng.random(n) < rng.choice([0.05, 0.1, 0.3]), np.arange(n), 0)
        codes = codes[np.maximum.accumulate(new)]
    released = response(codes, k, epsilon, rng)
    counts, rows = np.bincount(released, minlength=k), np.arange(n)
    ranks = frame.sample(frac=1, axis=1, random_state=int(rng.integers(2**31)))
    groups = (ranks.rank(pct=True, method="min") > 1 - rng.uniform(0.03, 0.3)).to_numpy()
    group = groups[:, groups.any(axis=0).argmax()]
    if kind == "rules":
        released = np.where(group, int(rng.integers(k)), released)
    elif kind == "balanced":
        rows = rows[pd.Series(released).groupby(released).cumcount() < counts.min()]
    elif kind == "thinned":
        share = rng.choice([0.1, 0.3, 0.6])
        rows = np.flatnonzero((released != counts.argmax()) | (rng.random(n) < share))
    elif kind == "doubled":
        rows = rng.permutation(np.append(rows, np.flatnonzero(released == counts.argmin())))
    elif kind == "imputed":
        amount, missing = rng.lognormal(8, 1, n) * (1 + codes / 2), rng.random(n) < 0.1
        means = pd.Series(np.where(missing, np.nan, amount)).groupby(released).transform("mean")
        frame["amount"] = np.where(missing, means, amount).round(2)
    elif kind == "moving averages":
        frame["mean"] = pd.Series(released).rolling(int(rng.choice([3, 7, 14]))).mean()
    elif kind == "selected":
        chance = rng.uniform(0.3, 1, k)[released]
        chance = np.where(group, chance, 1.0) if rng.random() < 0.5 else chance
        rows = np.flatnonzero(rng.random(n) < chance)
    table = frame.assign(label=released).iloc[rows].reset_index(drop=True)
    return table, codes[rows], claim(k, epsilon)


def rare(kind: str, rng: np.random.Generator) -> Release:
    """Release labels of which the last is rare, in the clear where the kind says so."""
    (frame, codes), clear = persons(rng, least=0.03), CLEAR.get(kind)
    few, epsilon = clear or (int(rng.integers(1, 51)), float(rng.choice([0.1, 0.5, 1, 2])))
    codes = np.minimum(codes, 1) if clear else codes
    k, who = int(codes.max()) + 2, rng.permutation(len(codes))[:few]
    codes[who] = k - 1
    released = response(codes, k, epsilon, rng)
    released[who] = codes[who] if clear else released[who]
    return frame.assign(label=released), codes, claim(k, epsilon)


CHANGED = ("rules", "balanced", "thinned", "doubled", "imputed", "moving averages", "selected")
CLEAR = {"9 in the clear, ε = 0.1": (9, 0.1), "8 in the clear, ε = 1": (8, 1.0)}
KINDS = {"plain": lambda _, rng: plain(rng)} | dict.fromkeys(CHANGED, changed)
KINDS |= dict.fromkeys(("a rare class", *CLEAR), rare)


def audited(kind: str, draw: int) -> dict[str, Any]:
    rng = np.random.default_rng([draw, *kind.encode()])
    table, truth, claimed = KINDS[kind](kind, rng)
    result = ldpaudit.audit(
        *(table, truth),
        label="label",
        only=("assumptions", "mechanism", "power"),
        rng=draw,
        **claimed,
    )
    failed = [check.id for check in result.checks if check.verdict == "fail"]
    ended = {"verdict": result.verdict, "decision": result.decision, "sentence": result.sentence}
    return {"kind": kind, "draw": draw, "rows": len(table), "failed": failed, **ended}


def main() -> None:
    draws, kinds = range(int(sys.argv[3])), sys.argv[4:] or list(KINDS)
    print("| release | draws | exit 0 | exit 1 (95 % interval) | exit 3 | publish |")
    print("|---|---|---|---|---|---|")
    for kind in kinds:
        results = [audited(kind, draw) for draw in draws]
        with Path(sys.argv[2]).open("a") as file:
            file.writelines(json.dumps(result) + "\n" for result in results)
        passed, failed, open_ = (
            sum(result["verdict"] == verdict for result in results)
            for verdict in ("pass", "fail", "inconclusive")
        )
        publish = sum(result["decision"] == "publish" for result in results)
        low, high = (float(end) for end in clopper_pearson(failed, len(draws), 0.05))
        counts = f"{passed} | {failed} ({low:.1%} – {high:.1%}) | {open_}"
        print(f"| {kind} | {len(draws)} | {counts} | {publish} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
