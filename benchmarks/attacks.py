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
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

from benchmarks.planted import declaration, release_of, released, table_of
from benchmarks.runner import DATA, Array, Rng, Rows, case, heads
from ldpaudit.attacks import Knowledge, create_attack
from ldpaudit.attacks.interface import as_seen_by, without_truth
from ldpaudit.attacks.scoring import ACCURACY, lower_bound, score_fold, upper_bound
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.estimates import best_parts
from ldpaudit.audits.label_inference.runs import AttackRun, folds_of, run_attacks
from ldpaudit.estimators.advantage import advantage_ceiling
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.pipeline.audit import audit
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


@case("attacks", releases=2, fresh=500)
def attacks_coverage(releases: int = 500, fresh: int = 20_000) -> Rows:
    """Are the intervals of attacks right?

    Three attacks on simulated releases of 300 rows; their accuracy on fresh rows is the truth.
    """
    levels, n = (0.8, 0.95), 300
    names = ("released-label", "bayes", "oracle")
    found: list[list[Any]] = []
    for seed in range(releases):
        rng = np.random.default_rng(seed)
        truth = rng.random(n + fresh) < 0.4
        values = rng.normal(size=(n + fresh, 3)) + 0.5 * (2 * truth[:, None] - 1)
        mechanism = RandomizedResponse.from_epsilon((0, 1), 1.0)
        whole = released(table_of(values), truth, mechanism, rng)
        parts = [whole.take(np.arange(half, n, 2)) for half in (0, 1)]
        more = whole.take(np.arange(n, n + fresh))
        folds: dict[str, list[Any]] = {name: [] for name in names}
        for fitting, held in (parts, parts[::-1]):
            for name in names:
                attack = create_attack(name, Knowledge(mechanism.channel, seed=seed))
                attack.fit(fitting, rng)
                scored = [
                    score_fold(
                        np.asarray(part.truth),
                        attack.posterior(part),
                        None,
                        rate_alpha=0.05,
                        rng=rng,
                    )
                    for part in (held, more)
                ]
                folds[name].append(scored)
        true = {a: np.mean([ACCURACY.value(f[1]) for f in both]) for a, both in folds.items()}
        runs = [AttackRun(a, a, tuple(f[0] for f in both)) for a, both in folds.items()]
        for level in levels:
            own, tail = [f[0] for f in folds["bayes"]], (1 - level) / 2
            low, high = (float(bound(own, ACCURACY, tail)) for bound in (lower_bound, upper_bound))
            best: Any = next(iter(best_parts(runs, level)))
            inside = low <= true["bayes"] <= high, best.low <= max(true.values()) <= best.high
            found.append([level, *inside, (best.high - best.low) / 2])
    columns = ("`bayes` covered|.3f", "`attack.best` covered|.3f", "half width of best|.3f")
    yield heads("level", *columns)
    for level in levels:
        yield level, *np.mean([row[1:] for row in found if row[0] == level], axis=0)


def best_guess(joint: Array, channels: list[Array], seen: list[Array]) -> Array:
    """Return the best guess of the first column given all released columns and the public one."""
    table = joint
    for axis, channel in enumerate(channels[1:], 1):
        table = np.moveaxis(np.tensordot(table, channel, axes=([axis], [0])), -1, axis)
    rows = np.moveaxis(table, 0, -1)[tuple(seen[1:])]
    return np.asarray((rows * channels[0].T[seen[0]]).argmax(axis=1))


@case(rows=300, laws=1, own=(1.0,), others=(3.0,))
def attack_beside(
    rows: int = 20_000,
    laws: int = 3,
    own: tuple[float, ...] = (1.0, 1.0, 0.5),
    others: tuple[float, ...] = (1.0, 3.0, 4.0),
) -> Rows:
    """How near do attacks come to the best guess of a column from all noisy columns?

    Three private columns and a public one from a made-up joint law; the private ones go through
    randomized response. The law and the channels are known here, so the best guess of the first
    column is enumerated. Both it and the default attacks guess the same people.
    """
    sizes, public = (3, 4, 2), 3
    columns = ("optimum|.4f", "without b and c|.4f", "best attack|.4f", "below it|.2f", "which")
    yield heads("law", "ε of a; b, c", *columns, "from the release alone (bayes)|.4f", "s|.0f")
    for number in range(laws):
        rng = np.random.default_rng([14, number])
        law = rng.dirichlet(np.full(math.prod(sizes) * public, 0.25))
        joint = law.reshape((*sizes, public))
        for epsilon, other in zip(own, others, strict=True):
            drawn = np.unravel_index(rng.choice(law.size, rows, p=law), joint.shape)
            *labels, x = (codes.astype(np.int32) for codes in drawn)
            made = [
                RandomizedResponse.from_epsilon(tuple("abcd"[:k]), claimed)
                for k, claimed in zip(sizes, (epsilon, other, other), strict=True)
            ]
            noisy = [m.sample(y, rng) for m, y in zip(made, labels, strict=True)]
            channels = [m.channel.matrix for m in made]
            best = np.mean(best_guess(joint, channels, [*noisy, x]) == labels[0])
            blind = [channels[0], *(np.ones((k, 1)) for k in sizes[1:])]
            zeros = [np.zeros_like(x)] * 2
            alone = np.mean(best_guess(joint, blind, [noisy[0], *zeros, x]) == labels[0])
            features = table_of(codes=np.stack([*noisy[1:], x], axis=1))
            classes = made[0].classes
            claim = declaration(classes, epsilon)
            release = release_of(features, labels[0], noisy[0], classes, claim)
            start = time.process_time()
            result = audit(release, Plan(seed=number), only=("label-inference",))
            found = {
                e.id.split(".")[1]: e.value
                for e in result.estimates
                if e.id.startswith("attack.") and e.id.endswith(".accuracy")
            }
            top = found.pop("best")
            which = next((name for name, value in found.items() if value == top), "")
            seconds = time.process_time() - start
            numbers = (best, alone, top, 100 * (best - top), which, found["bayes"], seconds)
            yield number + 1, f"{epsilon:g}; {other:g}", *numbers


# --- simple attackers: tables that are hard for some model, and who should do well on them

Learner = Callable[[Array, Array, Array], Array]
"""Fits on rows with labels, and returns P(y = 1) of other rows."""
Voter = Callable[[Array, Array], Array]
"""Returns the share of ones among the released labels that each row looks at, without its own."""


def by_chance(logits: Array, rng: Rng) -> Array:
    """Draw labels whose log-odds are known."""
    return np.asarray(rng.random(len(logits)) < expit(logits))


def zip_codes(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    share, code = rng.beta(0.4, 0.4, 1_500), rng.integers(0, 1_500, n)
    return table_of(codes=code[:, None]), rng.random(n) < share[code]


def zip_and_age(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    share, code, age = rng.beta(0.4, 0.4, 600), rng.integers(0, 600, n), rng.normal(size=n)
    logits = np.log(share[code] / (1 - share[code])).clip(-3, 3) + 1.2 * age
    return table_of(age[:, None], code[:, None]), by_chance(logits, rng)


def additive(columns: int, values: int, scale: float) -> Any:
    def make(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
        effects = rng.normal(0, scale, (columns, values))
        codes = rng.integers(0, values, (n, columns))
        logits = np.sum([effects[j][codes[:, j]] for j in range(columns)], axis=0)
        return table_of(codes=codes), by_chance(logits, rng)

    return make


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


def spiral(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    label, t = rng.random(n) < 0.5, np.sqrt(rng.random(n)) * 3 * np.pi
    values = np.stack([t * np.cos(t + np.pi * label), t * np.sin(t + np.pi * label)], axis=1)
    return table_of(values + rng.normal(0, 0.45, values.shape)), label


def xor(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    values = rng.normal(size=(n, 8))
    return table_of(values), (np.sign(values[:, :3]).prod(axis=1) > 0) ^ (rng.random(n) < 0.003)


def gaussians(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    label = rng.random(n) < 0.5
    scale = np.where(label[:, None], 1.6, 1.0)
    return table_of(rng.normal(size=(n, 10)) * scale + 0.2 * label[:, None]), label


def rings(n: int, rng: Rng) -> tuple[FeatureTable, Array]:
    values = rng.normal(size=(n, 5))
    label = np.floor(2 * np.linalg.norm(values[:, :2], axis=1)) % 2 > 0
    return table_of(values), label ^ (rng.random(n) < 0.02)


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


def encoded(x: Array, y: Array, asked: Array) -> Array:
    """Guess by logistic regression, whole numbers as the mean label of their value."""
    whole = (x % 1 == 0).all(axis=0)
    encoder = TargetEncoder(random_state=0)
    ours = np.hstack([encoder.fit_transform(x[:, whole], y), x[:, ~whole]])
    theirs = np.hstack([encoder.transform(asked[:, whole]), asked[:, ~whole]])
    return np.asarray(LogisticRegression().fit(ours, y).predict_proba(theirs)[:, 1])


def nearest_share(x: Array, labels: Array) -> Array:
    near = KNeighborsClassifier(7).fit(x / np.maximum(x.std(axis=0), 1e-9), labels)
    return np.asarray(labels[near.kneighbors(return_distance=False)].mean(axis=1))


def window_share(_: Array, labels: Array) -> Array:
    sums, seen = (np.convolve(v, np.ones(21), "same") - v for v in (labels, np.ones(len(labels))))
    return np.asarray(sums / seen)


one_hot = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
forest = RandomForestClassifier(300, min_samples_leaf=3, random_state=0)
boosted = learnt(HistGradientBoostingClassifier)
target = "target encoding, logistic"
# What is released, and who attacks it: a learner with true labels, or a vote over released ones.
HARD: Mapping[str, tuple[str, Any, str, Learner | None, Voter | None]] = {
    "zip": ("1,500 zip codes", zip_codes, "mean label of the zip code", by_value, None),
    "cells": ("3 columns of 12 values, random cells", cells_of_three, "HGB", boosted, None),
    "households": ("households of 8, one label", households, "HGB", boosted, None),
    "votes": ("the same, released labels", households, "8 nearest vote", None, nearest_share),
    "spiral": ("spiral", spiral, "15 nearest", learnt(lambda: KNeighborsClassifier(15)), None),
    "xor": ("XOR of three signs, 8 columns", xor, "HGB", boosted, None),
    "zip-age": ("600 zip codes and an age", zip_and_age, target, encoded, None),
    "two-zips": ("2 columns of 500 values", additive(2, 500, 1.8), target, encoded, None),
    "one-hot": ("6 of 20", additive(6, 20, 0.8), "one-hot logistic", learnt(lambda: one_hot), None),
    "duplicates": (
        *("5 equal rows of each", duplicates, "3 nearest"),
        *(learnt(lambda: KNeighborsClassifier(3)), None),
    ),
    "gaussians": ("10 normal columns of two scales", gaussians, "NB", learnt(GaussianNB), None),
    "rings": ("rings in 2 of 5 dimensions", rings, "forest", learnt(lambda: forest), None),
    "row-order": ("runs of 20 rows", in_order, "10 rows each side vote", None, window_share),
}


@case(rows=200, tables=("xor", "votes"))
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
