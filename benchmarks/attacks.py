"""How near label inference comes to what is possible, and to what simple attackers reach."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.planted import released, table_of
from benchmarks.runner import DATA, Array, Rng, Rows, case, heads
from ldpaudit.attacks import Knowledge, create_attack
from ldpaudit.attacks.interface import as_seen_by, without_truth
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.runs import folds_of, run_attacks
from ldpaudit.estimators.advantage import advantage_ceiling
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release

PUBLIC = ("released-label", "bayes", "bayes-whole-release")
"""Attacks that see no true label."""


class Population(NamedTuple):
    """People of whom P(label | features) is known exactly, float64 of shape (n, k)."""

    features: FeatureTable
    eta: Array

    def draw(self, epsilon: float, seed: int) -> tuple[Release, Any]:
        """Return a release of labels drawn from the exact probabilities."""
        rng = np.random.default_rng(seed)
        above = rng.random((len(self.eta), 1)) > np.cumsum(self.eta, axis=1)[:, :-1]
        mechanism = RandomizedResponse.from_epsilon(tuple(range(self.eta.shape[1])), epsilon)
        return released(self.features, above.sum(axis=1), mechanism, rng), mechanism


def cells(data: Path, file: str, label: str) -> tuple[FeatureTable, Array, Array]:
    """Return a public table of few feature cells: features, counts of labels, each row's cell."""
    frame = pd.read_parquet(data / f"{file}.parquet").drop(columns="rownames", errors="ignore")
    codes, values = pd.factorize(frame[label], sort=True)
    columns = frame.drop(columns=label)
    coded = np.stack([pd.factorize(columns[name])[0] for name in columns], axis=1)
    cell = columns.groupby(list(columns), sort=False, observed=True).ngroup().to_numpy()
    counts = np.zeros((cell.max() + 1, len(values)))
    np.add.at(counts, (cell, codes), 1)
    return table_of(codes=coded), counts, cell


TASKS = {
    "military (gender)": ("military", "gender"),
    "fertility (morekids)": ("fertility", "morekids"),
    "fertility (weeks worked)": ("fertility", "work"),
}


def populations(data: Path, rows: int) -> Iterator[tuple[str, Population]]:
    """Yield Gaussian mixtures, and the public tables whose exact probabilities are known."""
    rng = np.random.default_rng(0)
    for columns, shift in ((3, 0.5), (18, 0.25)):
        labels = rng.random(rows) < 0.4
        values = rng.normal(size=(rows, columns)) + shift * (2 * labels[:, None] - 1)
        eta = expit(2 * shift * values.sum(axis=1) + np.log(0.4 / 0.6))
        both = np.stack([1 - eta, eta], axis=1)
        yield f"Gaussian mixture, {columns} columns", Population(table_of(values), both)
    means = rng.normal(size=(4, 5))
    values = rng.normal(size=(rows, 5)) + means[rng.integers(0, 4, rows)]
    logs = -((values[:, None, :] - means) ** 2).sum(axis=2) / 2
    eta = np.exp(logs - logs.max(axis=1, keepdims=True))
    eta /= eta.sum(axis=1, keepdims=True)
    yield "Gaussian mixture, 4 classes", Population(table_of(values), eta)
    for name, (file, label) in TASKS.items() if data.is_dir() else ():
        features, counts, cell = cells(data, file, label)
        yield name, Population(features, (counts / counts.sum(axis=1, keepdims=True))[cell])


@case(epsilons=(1.0,), tasks=("fertility (weeks worked)",))
def exact_advantage(
    tasks: tuple[str, ...] = tuple(TASKS),
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0),
    data: Path = DATA,
) -> Rows:
    """How much does randomized response add to the best guess from the features?

    Where features take few distinct values P(label | features) is the frequency in the cell, and
    the additive advantage follows in closed form.
    """
    gains = [f"ε = {epsilon:g}|.6f" for epsilon in epsilons]
    yield heads("data (label)", "cells", "features only|.5f", *gains)
    for name in tasks:
        _, counts, _ = cells(data, *TASKS[name])
        weights = counts.sum(axis=1)
        eta = counts / weights[:, None]
        before = np.average(eta.max(axis=1), weights=weights)
        informed = []
        for epsilon in epsilons:
            mechanism = RandomizedResponse.from_epsilon(tuple(range(eta.shape[1])), epsilon)
            right = mechanism.channel.informed_accuracy(eta)
            informed.append(np.average(right, weights=weights) - before)
        yield name, len(eta), before, *informed


def cross_fitted(
    release: Release, mechanism: Any, names: tuple[str, ...], seed: int
) -> dict[str, Array]:
    """Return each attack's posterior for every row, fitted on the other half."""
    rng = np.random.default_rng(seed)
    halves = rng.permutation(len(release)) % 2
    shape = (len(release), len(release.classes))
    found = {name: np.empty(shape, dtype=np.float32) for name in names}
    for half in (0, 1):
        fitting, held = (release.take(np.flatnonzero(halves == h)) for h in (half, 1 - half))
        knowledge = Knowledge(mechanism.channel, seed=seed, claim=mechanism)
        for name in names:
            attack = create_attack(name, knowledge)
            attack.fit(as_seen_by(attack, fitting), rng)
            found[name][halves != half] = attack.posterior(without_truth(held))
    return found


@case(rows=(100,), people=100, epsilons=(1.0,), runs=1, names=("bayes", "oracle"), data=Path("-"))
def attacks(
    rows: tuple[int, ...] = (0,),
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0),
    runs: int = 3,
    people: int = 100_000,
    names: tuple[str, ...] = (*PUBLIC, "oracle"),
    data: Path = DATA,
) -> Rows:
    """How near are attacks to what is possible, on large and small releases?

    Labels drawn from the exact P(label | features), then randomized response; two-fold
    cross-fitting; means over draws. The optimum is the attack with the exact P on the same draw.
    All numbers are chances of a right guess given what is released, by the exact probabilities: the
    true labels drawn add no chance of their own. The gap is that of the best attack that sees no
    true label, in points. ``--rows 1000 4000``: of small releases.
    """
    columns = [f"`{name}`|.4f" for name in names]
    yield heads("population", "rows", "ε", "optimum|.4f", *columns, "best public gap|.2f")
    for (name, population), size in product(populations(data, people), rows):
        for epsilon in epsilons:
            shares: dict[str, list[float]] = {name: [] for name in ("optimum", *names)}
            for seed in range(1, runs + 1):
                release, mechanism = population.draw(epsilon, seed)
                every = np.arange(len(release))
                some = (
                    np.random.default_rng([seed, 1]).choice(every, size, False) if size else every
                )
                release, eta = release.take(some), population.eta[some]
                exactly = eta * mechanism.channel.matrix.T[release.released]
                exactly /= exactly.sum(axis=1, keepdims=True)
                shares["optimum"].append(float(exactly.max(axis=1).mean()))
                for attack, posterior in cross_fitted(release, mechanism, names, seed).items():
                    guess = posterior.argmax(axis=1)[:, None]
                    shares[attack].append(float(np.take_along_axis(exactly, guess, 1).mean()))
            best, *means = (float(np.mean(values)) for values in shares.values())
            public = max(m for n, m in zip(names, means, strict=True) if n != "oracle")
            gap = 100 * max(best - public, 0.0)
            yield name, len(some), epsilon, best, *means, gap


@case("attacks", runs=2)
def attacks_published(runs: int = 60) -> Rows:
    """How good are attacks beside the published one of Wu et al. (2023), in its own simulation?

    Two unit-vector Gaussian classes, d = N = 100, σ = 1; advantages over the features, in sample,
    as published: the attacker has one release, and guesses its rows.
    """
    means, published = (
        np.eye(2, 100),
        {0.1: -0.244, 0.5: -0.146, 1.0: -0.025, 2.0: 0.118, 4.0: 0.218},
    )
    ours = ("released-label", "bayes")
    columns = [f"{name}|+.4f" for name in ("its attack here", *ours, "optimum")]
    yield heads("ε", "published|+.3f", *columns, "ceiling|.4f")
    for epsilon, reported in published.items():
        gains = []
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            values = means[rng.integers(0, 2, 100)] + rng.normal(size=(100, 100))
            eta = expit(values @ (means[1] - means[0]))
            truth, mechanism = (
                rng.random(100) < eta,
                RandomizedResponse.from_epsilon((0, 1), epsilon),
            )
            release = released(table_of(values), truth, mechanism, rng)
            theirs = LogisticRegression(max_iter=500).fit(values, release.released)
            guesses = [theirs.predict(values)]
            for name in ours:
                attack = create_attack(name, Knowledge(mechanism.channel, seed=seed))
                attack.fit(without_truth(release), rng)
                guesses.append(attack.posterior(without_truth(release)).argmax(axis=1))
            both = np.stack([1 - eta, eta], axis=1)
            guesses.append((both * mechanism.channel.matrix.T[release.released]).argmax(axis=1))
            without = np.maximum(eta, 1 - eta).mean()
            gains.append([np.mean(guess == truth) - without for guess in guesses])
        yield epsilon, reported, *np.mean(gains, axis=0), advantage_ceiling(epsilon, 2)
    error = np.std(gains, axis=0).max() / math.sqrt(runs)
    yield f"{runs} draws; standard error of each mean about {error:.3f}."


# --- simple attackers: tables that are hard for some model, and who should do well on them

Learner = Callable[[Array, Array, Array], Array]
"""Fits on rows with labels, and returns P(y = 1) of other rows."""
Voter = Callable[[Array, Array], Array]
"""Returns the share of ones among the released labels that each row looks at, without its own."""


def zip_codes(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    share, code = rng.beta(0.4, 0.4, 1_500), rng.integers(0, 1_500, n)
    return table_of(codes=code[:, None]), rng.random(n) < share[code]


def cells_of_three(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    share, codes = rng.beta(0.4, 0.4, (12, 12, 12)), rng.integers(0, 12, (n, 3))
    return table_of(codes=codes), rng.random(n) < share[tuple(codes.T)]


def households(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    home = np.repeat(np.arange(n // 8 + 1), 8)[:n]
    label = rng.random(home.max() + 1) < 0.5
    values = rng.normal(size=(home.max() + 1, 6))[home] + rng.normal(0, 0.02, (n, 6))
    order = rng.permutation(n)
    return table_of(values[order]), label[home][order]


def duplicates(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    values = rng.normal(size=(n // 5, 4))[rng.integers(0, n // 5, n)]
    return table_of(values), (np.sin(1e4 * values.sum(axis=1)) > 0) ^ (rng.random(n) < 0.05)


def gaussians(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    label = rng.random(n) < 0.5
    scale = np.where(label[:, None], 1.6, 1.0)
    return table_of(rng.normal(size=(n, 10)) * scale + 0.2 * label[:, None]), label


def in_order(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    runs = np.repeat(rng.random(n // 20 + 1) < 0.5, 20)[:n]
    return table_of(rng.normal(size=(n, 3))), runs ^ (rng.random(n) < 0.05)


def by_value(fitted: Array, labels: Array, asked: Array) -> Array:
    """Guess by the mean label of equal rows."""
    both = np.concatenate([fitted, asked])
    codes = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    mine, theirs = codes[: len(fitted)], codes[len(fitted) :]
    ones, seen = (np.bincount(mine, w, codes.max() + 1) for w in (labels, None))
    return np.asarray((ones + labels.mean())[theirs] / (seen + 1)[theirs])


def learnt(make: Callable[[], Any]) -> Learner:
    """Guess by a model of scikit-learn."""
    return lambda x, y, asked: np.asarray(make().fit(x, y).predict_proba(asked)[:, 1])


def nearest_share(x: Array, labels: Array) -> Array:
    near = KNeighborsClassifier(7).fit(x / np.maximum(x.std(axis=0), 1e-9), labels)
    return np.asarray(labels[near.kneighbors(return_distance=False)].mean(axis=1))


def window_share(_: Array, labels: Array) -> Array:
    sums, seen = (np.convolve(v, np.ones(21), "same") - v for v in (labels, np.ones(len(labels))))
    return np.asarray(sums / seen)


boosted = learnt(HistGradientBoostingClassifier)
# What is released, and who attacks it: a learner with true labels, or a vote over released ones.
HARD: Mapping[str, tuple[str, Any, str, Learner | None, Voter | None]] = {
    "zip": ("1,500 zip codes", zip_codes, "mean label of the zip code", by_value, None),
    "cells": ("3 columns of 12 values, random cells", cells_of_three, "HGB", boosted, None),
    "households": ("households of 8, one label", households, "HGB", boosted, None),
    "votes": ("the same, released labels", households, "8 nearest vote", None, nearest_share),
    "duplicates": (
        *("5 equal rows of each", duplicates, "3 nearest"),
        *(learnt(lambda: KNeighborsClassifier(3)), None),
    ),
    "gaussians": ("10 normal columns of two scales", gaussians, "NB", learnt(GaussianNB), None),
    "row-order": ("runs of 20 rows", in_order, "10 rows each side vote", None, window_share),
}


@case(rows=200, tables=("gaussians", "votes"))
def simple_attackers(
    tables: tuple[str, ...] = tuple(HARD), rows: int = 6_000, epsilon: float = 1.0
) -> Rows:
    """Does an attacker of a few lines beat the suite?

    The strongest attack of the suite and a simple attacker, both with true labels of the other half
    of the rows or both without any, and the features-only references. All see the same release.
    """
    warnings.simplefilter("ignore")
    columns = ("suite ahead by (points)|+.1f", "features-only: suite|.4f", "simple|.4f", "s|.0f")
    yield heads("release", "suite", "simple attacker", *columns)
    for name in tables:
        words, make, attacker, learn, vote = HARD[name]
        rng, mechanism = (
            np.random.default_rng(20261122),
            RandomizedResponse.from_epsilon((0, 1), epsilon),
        )
        features, truth = make(rows, rng)
        release = released(features, truth, mechanism, rng)
        context, started = AuditContext(release, mechanism, Plan(seed=1, device="cpu")), time.time()
        runs, _ = run_attacks(context, folds_of(context))
        seconds = time.time() - started
        scores = {r.name: sum(f.correct for f in r.folds) / sum(f.n for f in r.folds) for r in runs}
        suite = [r.name for r in runs if r.uses_release and not (vote and r.name == "oracle")]
        best = max(suite, key=scores.__getitem__)
        x, labels = (
            np.hstack([features.numeric, features.categorical]),
            np.asarray(release.released),
        )
        eta, keep = np.empty(rows), expit(epsilon)
        if vote is not None:
            eta = ((vote(x, labels) - (1 - keep)) / (2 * keep - 1)).clip(0.001, 0.999)
        for half in (0, 1) if learn else ():
            fitted, asked = context.halves() == half, context.halves() != half
            assert learn is not None
            eta[asked] = learn(x[fitted], truth[fitted], x[asked])
        odds = np.log(eta.clip(1e-6) / (1 - eta).clip(1e-6)) + epsilon * (2 * labels - 1)
        theirs, alone = np.mean((odds > 0) == truth), np.mean((eta > 0.5) == truth)
        beside = (None, None) if vote else (scores["features-only"], alone)
        said = (f"{best} {scores[best]:.4f}", f"{attacker} {theirs:.4f}")
        yield words, *said, 100 * (scores[best] - theirs), *beside, seconds
