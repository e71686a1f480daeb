"""Several private columns: what learners make of noisy ones, and what other tools tell of the risk.

    python benchmarks/several_columns.py learning DATA
    python benchmarks/several_columns.py beside DATA

DATA is a folder with adult.parquet. Prints Markdown. ``learning``: accuracy on 20,000 test rows
with true values of all columns, of a learner trained on 10,000 released rows. ``beside`` needs the
package multi-freq-ldpy, which releases income and marital status by random sampling plus fake data;
the same table then goes through invariant post-randomization, its matrices made as the
documentation of sdcMicro's ``pram`` describes, with its defaults. Both releases are audited here.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ldpaudit
from ldpaudit.commands.utility.companions import other_columns
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.datasets import read_file_columns
from ldpaudit.mechanisms import Channel, ExplicitChannel, RandomizedResponse
from ldpaudit.mechanisms.joint import (
    IndependentColumns,
    JointMechanism,
    JointRR,
    RandomSampling,
    marginal_claims,
)
from ldpaudit.mechanisms.view import DeclaredCoding

ROWS, TESTS, SEEDS = 10_000, 20_000, 3
LABELS = ("income", "marital_status")


def adult(folder: Path, seed: int) -> pd.DataFrame:
    frame = pd.read_parquet(folder / "adult.parquet").sample(ROWS + TESTS, random_state=seed)
    return frame.drop(columns=["split", "relationship", "fnlwgt"]).reset_index(drop=True)


def invented(_folder: Path, seed: int) -> pd.DataFrame:
    """A state of three values that three features tell of, and a label that depends on it most."""
    rng, n = np.random.default_rng(seed), ROWS + TESTS
    x = rng.normal(size=(n, 3))
    odds = np.exp(x[:, :1] * np.array([1, 0, -1.0]))
    odds /= odds.sum(axis=1, keepdims=True)
    state = (odds.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    chance = 1 / (1 + np.exp(-2.0 * (state - 1) - 0.7 * x[:, 1]))
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame[LABELS[1]] = np.array(["low", "mid", "top"])[state]
    frame[LABELS[0]] = np.where(rng.random(n) < chance, "yes", "no")
    return frame


def mechanisms(domains: tuple[tuple[str, ...], ...]) -> dict[str, JointMechanism]:
    def independent(first: float, second: float) -> JointMechanism:
        rr = RandomizedResponse.from_epsilon
        return IndependentColumns((rr(domains[0], first), rr(domains[1], second)))

    return {
        "independent, ε 1 and 0.5": independent(1, 0.5),
        "independent, ε 1 and 1": independent(1, 1),
        "independent, ε 1 and 2": independent(1, 2),
        "joint-rr, ε 1": JointRR(domains, 1.0),
        "joint-rr, ε 3": JointRR(domains, 3.0),
        "rs-fd, ε 1": RandomSampling(domains, 1.0),
        "rs-fd, ε 2": RandomSampling(domains, 2.0),
    }


def declared(mechanism: JointMechanism) -> dict[str, Any]:
    if mechanism.independent:
        parts = [{"name": c.name, **c.declaration()} for c in mechanism.columns]
        labels = [{"label": a, "mechanism": m} for a, m in zip(LABELS, parts, strict=True)]
        return {"version": 2, "labels": labels}
    whole = {"name": mechanism.name, **mechanism.declaration()}
    return {"version": 2, "labels": [{"label": label} for label in LABELS], "mechanism": whole}


def codes(frame: pd.DataFrame, domains: tuple[tuple[str, ...], ...]) -> np.ndarray:
    columns = [pd.Categorical(frame[a], d).codes for a, d in zip(LABELS, domains, strict=True)]
    return np.stack(columns, axis=1).astype(np.int32)


def released(frame: pd.DataFrame, drawn: np.ndarray, domains: Any, claim: dict[str, Any]) -> Any:
    out = frame.copy()
    for j, (label, domain) in enumerate(zip(LABELS, domains, strict=True)):
        out[label] = np.array(domain)[drawn[:, j]]
    out.attrs["ldpaudit"] = json.dumps(claim)
    return out


def scores(frame: pd.DataFrame, mechanism: JointMechanism, model: Any, seed: int) -> list[float]:
    """Return accuracies: without the other column, at its word, by ldpaudit, of the truth."""
    domains = tuple(c.channel.classes for c in mechanism.columns)
    train, test = frame[:ROWS], frame[ROWS:]
    drawn = mechanism.sample(codes(train, domains), np.random.default_rng(seed))
    reading = read_file_columns(
        released(train, drawn, domains, declared(mechanism)),
        truth=train[list(LABELS)],
        test=test.reset_index(drop=True),
        coding=DeclaredCoding,
        marginals=marginal_claims,
    )
    file, tests = reading.file, reading.tests
    alone, rows = file.alone(0), tests[0].features
    public = rows.without(file.others[0])
    told = replace(alone, released=alone.truth, outputs=alone.classes)
    truth = other_columns(file, 0, tests, true=True)
    ways = (
        (alone, public, Learner(model)),
        (file.columns[0], rows, Learner(model)),
        (alone, public, Learner(model, beside=other_columns(file, 0, tests))),
        (told, public, Learner(model, true=True, beside=truth)),
    )
    found = []
    for release, asked, learner in ways:
        answers, _ = learner.classes(release, asked, np.random.default_rng(seed))
        found.append(float((answers == tests[0].labels).mean()))
    return found


def learning(folder: Path) -> None:
    print("| table | released by | learner | without | at its word | ldpaudit | true labels |")
    print("|---|---|---|---|---|---|---|")
    for name, make in (("made up", invented), ("Adult", adult)):
        for model in ("logistic", "boosting"):
            seeds = range(SEEDS if model == "logistic" else 1)
            frames = [make(folder, seed) for seed in seeds]
            domains = tuple(tuple(sorted(frames[0][label].unique())) for label in LABELS)
            for words, mechanism in mechanisms(domains).items():
                each = [scores(f, mechanism, model, s) for s, f in zip(seeds, frames, strict=True)]
                cells = " | ".join(f"{100 * value:.1f}" for value in np.mean(each, axis=0))
                print(f"| {name} | {words} | {model} | {cells} |", flush=True)


def invariant(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Post-randomization that keeps the shares: diagonals from 0.8 to 1, undone, half mixed in."""
    k = len(shares)
    stay = rng.uniform(0.8, 1, k)
    first = np.full((k, k), 0.0) + ((1 - stay) / (k - 1))[:, None]
    np.fill_diagonal(first, stay)
    back = (first * shares[:, None]).T
    back /= back.sum(axis=1, keepdims=True)
    return 0.5 * first @ back + 0.5 * np.eye(k)


def audited(table: pd.DataFrame, truth: pd.DataFrame) -> Any:
    return ldpaudit.audit(table, truth=truth, only=("mechanism", "person"), rng=1)


def beside(folder: Path) -> None:
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import (
        RSpFD_GRR_Aggregator_MI,
        RSpFD_GRR_Client,
    )

    frame = adult(folder, 0)[:ROWS]
    domains = tuple(tuple(sorted(frame[label].unique())) for label in LABELS)
    sizes, true = [len(d) for d in domains], codes(frame, domains)
    shares = [np.bincount(true[:, j], minlength=k) / ROWS for j, k in enumerate(sizes)]
    np.random.seed(1)  # noqa: NPY002 — the package draws from it.
    drawn = np.array([RSpFD_GRR_Client(row, sizes, 2, 1.0) for row in true])
    estimates = RSpFD_GRR_Aggregator_MI(drawn, sizes, 2, 1.0)
    off = [float(np.abs(np.asarray(e) - s).max()) for e, s in zip(estimates, shares, strict=True)]
    mechanism = RandomSampling(domains, 1.0)
    result = audited(released(frame, drawn, domains, declared(mechanism)), frame[list(LABELS)])
    report("rs-fd", result)
    print("estimated shares off by at most", off)
    print("stated ε 1; within", [mechanism.epsilon_of(j) for j in (0, 1)])
    rng = np.random.default_rng(2)
    channels = [Channel(invariant(s, rng), d, d) for s, d in zip(shares, domains, strict=True)]
    several = IndependentColumns(tuple(map(ExplicitChannel, channels)))
    drawn = several.sample(true, rng)
    for j, label in enumerate(LABELS):
        print("pram: changed in", label, f"{100 * (drawn[:, j] != true[:, j]).mean():.2f} %")
    report("pram", audited(released(frame, drawn, domains, declared(several)), frame[list(LABELS)]))


def report(name: str, result: Any) -> None:
    print(name, "the whole:", {e.id: e.value for e in result.estimates if "epsilon" in e.id})
    for part in result.labels:
        wanted = ("mechanism.epsilon", "mechanism.epsilon_lower")
        print(name, "a column:", {e.id: e.value for e in part.estimates if e.id in wanted})


if __name__ == "__main__":
    {"learning": learning, "beside": beside}[sys.argv[1]](Path(sys.argv[2]))
