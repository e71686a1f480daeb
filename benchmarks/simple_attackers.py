"""Whether an attacker of a few lines beats the suite of label-inference attacks.

    python benchmarks/simple_attackers.py [CASE …]

Prints Markdown: for each case the accuracy of the strongest attack of the suite and of a simple
attacker (both with true labels of the other half of the rows, or both without any), and that of the
features-only references. All see the same release, by binary randomized response with ε = 1.
"""

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.runs import folds_of, run_attacks
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

warnings.simplefilter("ignore")

ROWS, EPSILON, SEED = 6_000, 1.0, 20261122
SEES_TRUTH = ("oracle",)
KEEP = np.exp(EPSILON) / (1 + np.exp(EPSILON))

Columns = np.ndarray
"""Feature columns as numbers, shape (n, d)."""
Learner = Callable[[Columns, np.ndarray, Columns], np.ndarray]
"""Fits on rows with labels, and returns P(y = 1) of other rows."""
Voter = Callable[[Columns, np.ndarray], np.ndarray]
"""Returns the share of ones among the labels that each row looks at, its own left out."""


@dataclass(frozen=True)
class Case:
    """A release, and who attacks it: a learner with true labels, or a vote over released ones."""

    name: str
    words: str
    make: Callable[[np.random.Generator], tuple[FeatureTable, np.ndarray]]
    attacker: str
    learn: Learner | None = None
    vote: Voter | None = None


def table(numeric: np.ndarray | None = None, codes: np.ndarray | None = None) -> FeatureTable:
    n = len(codes) if numeric is None else len(numeric)
    numeric = np.zeros((n, 0)) if numeric is None else numeric
    codes = np.zeros((n, 0)) if codes is None else codes
    sizes = tuple(int(c.max()) + 1 for c in codes.T)
    width = numeric.shape[1] + codes.shape[1]
    return FeatureTable(numeric.astype(np.float32), codes.astype(np.int32), sizes, width)


def columns_of(features: FeatureTable) -> Columns:
    return np.concatenate([features.numeric, features.categorical], axis=1).astype(np.float64)


# --- cases ---------------------------------------------------------------------------------------


def zips(rng: np.random.Generator):
    share, code = rng.beta(0.4, 0.4, 1_500), rng.integers(0, 1_500, ROWS)
    return table(codes=code[:, None]), rng.random(ROWS) < share[code]


def zip_numbers(rng: np.random.Generator):
    features, truth = zips(rng)
    return table(10_000.0 + 7 * features.categorical), truth


def zip_and_age(rng: np.random.Generator):
    share, code = rng.beta(0.4, 0.4, 600), rng.integers(0, 600, ROWS)
    age = rng.normal(size=ROWS)
    logit = np.log(share[code] / (1 - share[code])).clip(-3, 3) + 1.2 * age
    return table(age[:, None], code[:, None]), rng.random(ROWS) < 1 / (1 + np.exp(-logit))


def two_zips(rng: np.random.Generator):
    effects = rng.normal(0, 1.8, (2, 500))
    codes = rng.integers(0, 500, (ROWS, 2))
    logit = effects[0][codes[:, 0]] + effects[1][codes[:, 1]]
    return table(codes=codes), rng.random(ROWS) < 1 / (1 + np.exp(-logit))


def cells(rng: np.random.Generator, noise: int = 0):
    share = rng.beta(0.4, 0.4, (12, 12, 12))
    codes = rng.integers(0, 12, (ROWS, 3 + noise))
    return table(codes=codes), rng.random(ROWS) < share[tuple(codes[:, :3].T)]


def small_cells(rng: np.random.Generator):
    share = rng.beta(0.3, 0.3, (5, 5, 5))
    codes = rng.integers(0, 5, (ROWS, 7))
    return table(codes=codes), rng.random(ROWS) < share[codes[:, 1], codes[:, 3], codes[:, 6]]


def households(rng: np.random.Generator, size: int = 8, width: int = 6):
    home = np.repeat(np.arange(ROWS // size + 1), size)[:ROWS]
    label = rng.random(home.max() + 1) < 0.5
    values = rng.normal(size=(home.max() + 1, width))[home] + rng.normal(0, 0.02, (ROWS, width))
    order = rng.permutation(ROWS)
    return table(values[order]), label[home][order]


def duplicates(rng: np.random.Generator):
    values = rng.normal(size=(ROWS // 5, 4))[rng.integers(0, ROWS // 5, ROWS)]
    label = (np.sin(1e4 * values.sum(axis=1)) > 0) ^ (rng.random(ROWS) < 0.05)
    return table(values), label


def spiral(rng: np.random.Generator):
    label, t = rng.random(ROWS) < 0.5, np.sqrt(rng.random(ROWS)) * 3 * np.pi
    angle = t + np.pi * label
    values = np.stack([t * np.cos(angle), t * np.sin(angle)], axis=1)
    return table(values + rng.normal(0, 0.45, values.shape)), label


def xor(rng: np.random.Generator):
    values = rng.normal(size=(ROWS, 8))
    label = np.prod(np.sign(values[:, :3]), axis=1) > 0
    return table(values), label ^ (rng.random(ROWS) < 0.003)


def one_hot(rng: np.random.Generator):
    effects = rng.normal(0, 0.8, (6, 20))
    codes = rng.integers(0, 20, (ROWS, 6))
    logit = sum(effects[j][codes[:, j]] for j in range(6))
    return table(codes=codes), rng.random(ROWS) < 1 / (1 + np.exp(-logit))


def gaussians(rng: np.random.Generator):
    label = rng.random(ROWS) < 0.5
    scale = np.where(label[:, None], 1.6, 1.0)
    return table(rng.normal(size=(ROWS, 10)) * scale + 0.2 * label[:, None]), label


def rings(rng: np.random.Generator):
    values = rng.normal(size=(ROWS, 5))
    label = np.floor(2 * np.linalg.norm(values[:, :2], axis=1)) % 2 > 0
    return table(values), label ^ (rng.random(ROWS) < 0.02)


def in_order(rng: np.random.Generator):
    runs = np.repeat(rng.random(ROWS // 20 + 1) < 0.5, 20)[:ROWS]
    return table(rng.normal(size=(ROWS, 3))), runs ^ (rng.random(ROWS) < 0.05)


# --- simple attackers ----------------------------------------------------------------------------


def target_means(column: np.ndarray, labels: np.ndarray, asked: np.ndarray, weight: float = 1.0):
    size = int(max(column.max(), asked.max())) + 1
    ones = np.bincount(column, labels, size)
    return (ones + weight * labels.mean()) / (np.bincount(column, minlength=size) + weight)


def by_value(fitted: Columns, labels: np.ndarray, asked: Columns) -> np.ndarray:
    _, codes = np.unique(np.concatenate([fitted, asked]), axis=0, return_inverse=True)
    mine, theirs = codes[: len(fitted)], codes[len(fitted) :]
    return target_means(mine, labels, theirs)[theirs]


def encoded_logistic(fitted: Columns, labels: np.ndarray, asked: Columns) -> np.ndarray:
    from sklearn.preprocessing import TargetEncoder

    whole = [j for j in range(fitted.shape[1]) if (fitted[:, j] % 1 == 0).all()]
    other = [j for j in range(fitted.shape[1]) if j not in whole]
    encoder = TargetEncoder(random_state=0)
    ours = np.hstack([encoder.fit_transform(fitted[:, whole], labels), fitted[:, other]])
    theirs = np.hstack([encoder.transform(asked[:, whole]), asked[:, other]])
    return LogisticRegression().fit(ours, labels).predict_proba(theirs)[:, 1]


def crossed(fitted: Columns, labels: np.ndarray, asked: Columns) -> np.ndarray:
    return by_value(fitted[:, [1, 3, 6]], labels, asked[:, [1, 3, 6]])


def sklearns(make: Callable[[], object]) -> Learner:
    def learn(fitted: Columns, labels: np.ndarray, asked: Columns) -> np.ndarray:
        return make().fit(fitted, labels).predict_proba(asked)[:, 1]

    return learn


def one_hot_logistic(fitted: Columns, labels: np.ndarray, asked: Columns) -> np.ndarray:
    encoder = OneHotEncoder(handle_unknown="ignore").fit(fitted)
    model = LogisticRegression(max_iter=1000).fit(encoder.transform(fitted), labels)
    return model.predict_proba(encoder.transform(asked))[:, 1]


def nearest_share(size: int) -> Voter:
    def vote(columns: Columns, released: np.ndarray) -> np.ndarray:
        scaled = columns / np.maximum(columns.std(axis=0), 1e-9)
        model = KNeighborsClassifier(size).fit(scaled, released)
        found = model.kneighbors(return_distance=False)
        return released[found].mean(axis=1)

    return vote


def window_share(reach: int) -> Voter:
    def vote(_: Columns, released: np.ndarray) -> np.ndarray:
        sums = np.convolve(released, np.ones(2 * reach + 1), mode="same") - released
        seen = np.convolve(np.ones(len(released)), np.ones(2 * reach + 1), mode="same") - 1
        return sums / seen

    return vote


CASES = (
    Case("zip", "1,500 zip codes", zips, "mean label of the zip code", by_value),
    Case(
        "cells",
        "3 columns of 12 values, random cells",
        cells,
        "HGB",
        sklearns(HistGradientBoostingClassifier),
    ),
    Case(
        "households",
        "households of 8, near-equal rows, one label",
        households,
        "HGB",
        sklearns(HistGradientBoostingClassifier),
    ),
    Case(
        "household-votes",
        "the same, released labels only",
        households,
        "vote of the 8 nearest",
        vote=nearest_share(7),
    ),
    Case(
        "spiral",
        "spiral in two dimensions",
        spiral,
        "15 nearest",
        sklearns(lambda: KNeighborsClassifier(15)),
    ),
    Case(
        "spiral-votes",
        "the same, released labels only",
        spiral,
        "vote of the 40 nearest",
        vote=nearest_share(40),
    ),
    Case(
        "xor", "XOR of three signs, 8 columns", xor, "HGB", sklearns(HistGradientBoostingClassifier)
    ),
    Case(
        "zip-numbers",
        "zip codes written as numbers",
        zip_numbers,
        "mean label of the zip code",
        by_value,
    ),
    Case(
        "zip-age",
        "600 zip codes and an age",
        zip_and_age,
        "target encoding, logistic",
        encoded_logistic,
    ),
    Case(
        "two-zips",
        "two columns of 500 values",
        two_zips,
        "target encoding, logistic",
        encoded_logistic,
    ),
    Case(
        "cells-noise",
        "random cells of 3 of 7 columns of 5 values",
        small_cells,
        "mean label of the cell, columns known",
        crossed,
    ),
    Case(
        "duplicates",
        "5 equal rows of each, label by person",
        duplicates,
        "3 nearest",
        sklearns(lambda: KNeighborsClassifier(3)),
    ),
    Case(
        "one-hot", "6 columns of 20 values, additive", one_hot, "one-hot logistic", one_hot_logistic
    ),
    Case(
        "gaussians",
        "10 normal columns of two scales",
        gaussians,
        "Gaussian naive Bayes",
        sklearns(GaussianNB),
    ),
    Case(
        "rings",
        "rings in 2 of 5 dimensions",
        rings,
        "random forest",
        sklearns(lambda: RandomForestClassifier(300, min_samples_leaf=3, random_state=0)),
    ),
    Case(
        "row-order",
        "runs of 20 rows with one label",
        in_order,
        "vote of 10 rows each side",
        vote=window_share(10),
    ),
)


# --- measuring -----------------------------------------------------------------------------------


def released_by(features: FeatureTable, truth: np.ndarray, rng: np.random.Generator):
    mechanism = RandomizedResponse.from_epsilon((0, 1), EPSILON)
    codes = truth.astype(np.int32)
    labels = ReleasedLabels(mechanism.sample(codes, rng))
    return Release(features, labels, (0, 1), (0, 1), TrueLabels(codes)), mechanism


def simple(case: Case, release: Release, halves: np.ndarray) -> tuple[float, float]:
    """Return the accuracy of the simple attacker, and of its features-only part."""
    columns, truth = columns_of(release.features), np.asarray(release.truth)
    released = np.asarray(release.released)
    if case.vote is not None:
        share = case.vote(columns, released)
        eta = ((share - (1 - KEEP)) / (2 * KEEP - 1)).clip(0.001, 0.999)
    else:
        assert case.learn is not None
        eta = np.empty(len(truth))
        for half in (0, 1):
            fitted, asked = halves == half, halves != half
            eta[asked] = case.learn(columns[fitted], truth[fitted], columns[asked])
    odds = np.log(eta.clip(1e-6, 1 - 1e-6) / (1 - eta).clip(1e-6, 1)) + EPSILON * (2 * released - 1)
    return float(((odds > 0) == truth).mean()), float(((eta > 0.5) == truth).mean())


def measure(case: Case) -> str:
    rng = np.random.default_rng(SEED)
    features, truth = case.make(rng)
    release, mechanism = released_by(features, truth, rng)
    context = AuditContext(release, mechanism, Plan(seed=1, device="cpu"))
    started = time.perf_counter()
    runs, _ = run_attacks(context, folds_of(context))
    seconds = time.perf_counter() - started
    scores = {r.name: sum(f.correct for f in r.folds) / sum(f.n for f in r.folds) for r in runs}
    attacks = [r.name for r in runs if r.uses_release]
    if case.vote is not None:
        attacks = [name for name in attacks if name not in SEES_TRUTH]
    best = max(attacks, key=scores.__getitem__)
    theirs, features_only = simple(case, release, context.halves())
    reference = (
        "" if case.vote else f"{scores['features-only']:.4f} | {features_only:.4f}"
    ) or "– | –"
    if "-v" in sys.argv:
        print(sorted(((round(v, 4), k) for k, v in scores.items()), reverse=True), file=sys.stderr)
    return (
        f"| {case.words} | {best} {scores[best]:.4f} | {case.attacker} {theirs:.4f} | "
        f"{100 * (scores[best] - theirs):+.1f} | {reference} | {seconds:.0f} s |"
    )


def main() -> None:
    wanted = [name for name in sys.argv[1:] if name != "-v"]
    print(
        "| release | suite | simple attacker | suite ahead by (points) | features-only: suite "
        "| simple | time |\n|---|---|---|---|---|---|---|"
    )
    for case in CASES:
        if not wanted or case.name in wanted:
            print(measure(case), flush=True)


if __name__ == "__main__":
    main()
