"""Exact advantage on public data with finite feature cells, and how near the `bayes` attack comes.

Where features take few distinct values, P(label | features) is the frequency in the cell, and the
advantage of k-ary randomized response follows in closed form. The attack is then run as the audit
does: fitted on one half of the released rows, scored on the other.

Usage: python benchmarks/exact_advantage.py [--attack] DATA_FOLDER
"""

import argparse
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ldpaudit.attacks.interface import Knowledge, SharedModel, without_truth
from ldpaudit.attacks.model_attack import BayesAttack, OracleAttack
from ldpaudit.attacks.scoring import ACCURACY, average, lower_bound, score_fold, upper_bound
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.counts import hash_rows
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
SEEDS = (1, 2, 3, 4, 5)
TASKS = {
    "military (gender)": ("military.parquet", "gender", ()),
    "fertility (morekids)": ("fertility.parquet", "morekids", ("rownames",)),
    "fertility (weeks worked)": ("fertility.parquet", "work", ("rownames",)),
}
ATTACKS = (
    ("bayes, P known", BayesAttack, True),
    ("bayes", BayesAttack, False),
    ("oracle", OracleAttack, False),
)
EXPLANATION = f"""\
True labels drawn from the exact P(label | features), then randomized response; two-fold
cross-fitting; averages over all of the seeds {SEEDS[0]} to {SEEDS[-1]}. *Half width*: of the
certified 95 % interval. *Inside*: in how many seeds it holds the optimum; that is not promised,
since the interval is for the fitted attack, which may have more to learn. `bayes` learns from
released labels alone, `oracle` from true labels of the other half; with P known, `bayes` is the
optimal attack. Seconds of one core, both folds.

| data (label) | attack | ε | optimum | accuracy | gap | half width | inside | seconds |"""


@dataclass(frozen=True)
class Task:
    """A table with its true labels and the exact P(label | features) of its cells."""

    features: FeatureTable
    truth: np.ndarray
    classes: tuple[int, ...]
    eta: np.ndarray
    weights: np.ndarray
    cells: np.ndarray


def load(folder: Path, file: str, label: str, dropped: tuple[str, ...]) -> Task:
    frame = pd.read_parquet(folder / file).drop(columns=list(dropped))
    codes, values = pd.factorize(frame[label], sort=True)
    columns = frame.drop(columns=label)
    coded = [pd.factorize(columns[name]) for name in columns]
    categorical = np.stack([c for c, _ in coded], axis=1).astype(np.int32)
    empty = np.zeros((len(frame), 0), dtype=np.float32)
    features = FeatureTable(empty, categorical, tuple(len(v) for _, v in coded), len(coded))
    cells = np.unique(hash_rows(features), return_inverse=True)[1]
    counts = np.zeros((cells.max() + 1, len(values)))
    np.add.at(counts, (cells, codes), 1)
    rows = counts.sum(axis=1)
    return Task(
        features,
        codes.astype(np.int32),
        tuple(range(len(values))),
        counts / rows[:, None],
        rows,
        cells,
    )


def exact(task: Task, epsilon: float) -> tuple[float, float]:
    """Return the accuracy without and with the release."""
    channel = RandomizedResponse.from_epsilon(task.classes, epsilon).channel
    before = np.average(task.eta.max(axis=1), weights=task.weights)
    return before, np.average(channel.informed_accuracy(task.eta), weights=task.weights)


class Exact:
    """The exact P(label | features) in place of a fitted model."""

    def __init__(self, task: Task) -> None:
        self.keys, first = np.unique(hash_rows(task.features), return_index=True)
        self.eta = task.eta[task.cells[first]]

    def predict(self, features: FeatureTable) -> np.ndarray:
        """Return the probabilities of rows, float64 of shape (n, k)."""
        return self.eta[np.searchsorted(self.keys, hash_rows(features))]


def attacked(
    task: Task, epsilon: float, attack_type: type, seed: int, *, known: bool = False
) -> tuple[float, ...]:
    """Return the cross-fitted accuracy and its interval on labels drawn from the exact P."""
    rng = np.random.default_rng(seed)
    mechanism = RandomizedResponse.from_epsilon(task.classes, epsilon)
    draws = rng.random((len(task.truth), 1))
    drawn = (draws > np.cumsum(task.eta, axis=1)[task.cells]).sum(axis=1).astype(np.int32)
    drawn = np.minimum(drawn, len(task.classes) - 1)
    released = mechanism.sample(drawn, rng)
    release = Release(
        task.features,
        ReleasedLabels(released),
        task.classes,
        task.classes,
        TrueLabels(drawn),
    )
    halves = rng.permutation(len(release)) % 2
    folds = []
    for half in (0, 1):
        fitting, held_out = (release.take(np.flatnonzero(halves == h)) for h in (half, 1 - half))
        knowledge = Knowledge(mechanism.channel, threads=1, seed=seed)
        if known:
            knowledge.share("noise-aware", SharedModel(Exact(task)))
        attack = attack_type(knowledge).fit(fitting, rng)
        posterior = attack.posterior(without_truth(held_out))
        folds.append(score_fold(held_out.truth, posterior, None, rate_alpha=0.05, rng=rng))
    tail = 0.025
    return (
        average(folds, ACCURACY.value),
        lower_bound(folds, ACCURACY, tail),
        upper_bound(folds, ACCURACY, tail),
    )


def print_exact(tasks: dict[str, Task]) -> None:
    print("## Exact additive advantage under randomized response\n")
    print("| data (label) | cells | features only |", *(f"ε = {e:g} |" for e in EPSILONS))
    print("|---|---|---|" + "---|" * len(EPSILONS))
    for name, task in tasks.items():
        before = exact(task, 1.0)[0]
        gains = [exact(task, e)[1] - before for e in EPSILONS]
        print(f"| {name} | {len(task.eta):,} | {before:.5f} |", *(f"{g:.6f} |" for g in gains))


def print_attacks(tasks: dict[str, Task]) -> None:
    print("\n## Accuracy of attacks against the exact optimum\n")
    print(EXPLANATION)
    print("|---|---|---|---|---|---|---|---|---|")
    for name, task in tasks.items():
        for words, attack, known in ATTACKS:
            for epsilon in EPSILONS:
                best, start = exact(task, epsilon)[1], time.process_time()
                runs = [attacked(task, epsilon, attack, seed, known=known) for seed in SEEDS]
                seconds = (time.process_time() - start) / len(SEEDS)
                value = np.mean([accuracy for accuracy, _, _ in runs])
                width = np.mean([(high - low) / 2 for _, low, high in runs])
                inside = sum(low <= best <= high for _, low, high in runs)
                print(
                    f"| {name} | {words} | {epsilon:g} | {best:.5f} | {value:.5f} | "
                    f"{best - value:+.5f} | {width:.5f} | {inside}/{len(SEEDS)} | {seconds:.1f} |",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact advantage, and how near attacks come.")
    parser.add_argument("folder", type=Path, help="the folder of public datasets")
    parser.add_argument("--attack", action="store_true", help="run the attacks too (minutes)")
    options = parser.parse_args()
    tasks = {name: load(options.folder, *spec) for name, spec in TASKS.items()}
    print_exact(tasks)
    if options.attack:
        print_attacks(tasks)
    print(f"\nPython {platform.python_version()}, {platform.machine()}, one thread.")


if __name__ == "__main__":
    main()
