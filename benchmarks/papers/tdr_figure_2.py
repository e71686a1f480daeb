"""How many people lose how much: Ĵ(τ) under randomized response for several λ.

Busa-Fekete et al. (2023), Figure 2: the share of people whose instance-based privacy loss is at
least τ, by neighbours' labels, with δ = 0.01. Features are public and labels go through randomized
response, so ε of the mechanism is log(1 + 2(1 − λ)/λ), whatever the features say.

The published tables are not shipped; whoever has them passes their paths. Without them the same
figure is drawn for public tables and for a Gaussian mixture of SUSY's width and label share, where
J(τ) is known.

Usage: python benchmarks/papers/tdr_figure_2.py DATA_FOLDER [--kag14 FILE] [--kdd12 FILE]
           [--kdd10 FILE] [--susy FILE] [--svg FILE]
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from large_tables import read_large
from picture import Line, Panel, save
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier

from ldpaudit.datasets import read_release
from ldpaudit.estimators.instance_loss import (
    ErrorBudget,
    Exceedance,
    PosteriorBox,
    exceedance,
    mean_loss,
    mean_loss_lower,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.metric import fit_metric, score_space
from ldpaudit.estimators.neighbors import (
    count_labels,
    default_neighbors,
    neighbor_search,
)
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.encoding import BoostingMatrix
from ldpaudit.release import FeatureTable

SEED = 20230724
LAMBDAS = (0.1, 0.01, 0.001)
DELTA = 0.01
QUERIES = 20_000
GRID = np.arange(0, 241) / 10
MIXTURE_ROWS = 1_000_000
PUBLISHED = {"kag14": 10_000, "kdd12": 10_000, "kdd10": 10_000, "susy": 1_000}
"""The published neighbourhood sizes."""


@dataclass(frozen=True)
class Table:
    """Features, labels, and P(Y = 1 | x) where it is known."""

    name: str
    features: FeatureTable
    labels: np.ndarray
    neighbors: int | None = None
    posterior: np.ndarray | None = None


@dataclass(frozen=True)
class Found:
    """Ĵ of one table at one λ, in two metrics, and J itself where it is known."""

    table: str
    noise: float
    k: int
    l2: Exceedance
    learned: Exceedance
    truth: np.ndarray | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    for name in PUBLISHED:
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    found = []
    for table in tables(options):
        start = time.process_time()
        found += measured(table)
        seconds = time.process_time() - start
        shape = f"{len(table.labels):,} rows × {table.features.width}"
        print(f"{table.name}: {shape}, {seconds:.0f} s of processor time.", flush=True)
    _print_shares(found)
    _print_claims(found)
    if options.svg is not None:
        save(options.svg, list(_panels(found)), columns=len(LAMBDAS))


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Yield the tables one after the other: the published ones that were given come first."""
    for name, k in PUBLISHED.items():
        if getattr(options, name) is not None:
            yield Table(name, *read_large(getattr(options, name)), neighbors=k)
    for name, label in (("skin", "label"), ("military", "gender"), ("adult", "income")):
        drop = ("split",) if name == "adult" else ()
        release = read_release(options.folder / f"{name}.parquet", label=label, drop=drop).release
        labels = np.asarray(release.released)
        posterior = exact_posterior(release.features, labels) if name == "military" else None
        yield Table(name, release.features, labels, posterior=posterior)
    yield mixture(np.random.default_rng(SEED))


def mixture(rng: np.random.Generator) -> Table:
    """Return two Gaussians 18 wide that differ by 0.25 in each coordinate, as balanced as SUSY."""
    labels = (rng.random(MIXTURE_ROWS) < 0.457).astype(np.int32)
    x = rng.normal(size=(MIXTURE_ROWS, 18)) + 0.25 * (2 * labels[:, None] - 1)
    posterior = expit(0.5 * x.sum(axis=1) + logit(0.457))
    table = FeatureTable(x.astype(np.float32), np.empty((len(x), 0), dtype=np.int32), (), 18)
    return Table("Gaussian mixture", table, labels, 1_000, posterior)


def exact_posterior(features: FeatureTable, labels: np.ndarray) -> np.ndarray:
    """Return the share of label 1 among all people with the same features."""
    both = np.concatenate([features.numeric, features.categorical.astype(np.float32)], axis=1)
    _, cell = np.unique(both, axis=0, return_inverse=True)
    cell = cell.ravel()
    return np.asarray((np.bincount(cell, labels) / np.bincount(cell))[cell])


def measured(table: Table) -> list[Found]:
    """Return Ĵ of a table at every λ. Index rows and people who are asked are different rows."""
    rng = np.random.default_rng(SEED)
    fitting, index, asking = np.array_split(rng.permutation(len(table.labels)), 3)
    queries = asking[:QUERIES]
    k = table.neighbors or default_neighbors(len(index), 2)
    metric = fit_metric(table.features, "l2", rng=rng)
    at_index, at_queries = (metric.transform(table.features.take(r)) for r in (index, queries))
    l2 = _box(at_index, at_queries, table.labels[index], k)
    score = _score(table, fitting)
    wide = max(k, default_neighbors(len(index), 1))
    learned = _box(score(index), score(queries), table.labels[index], wide)
    return [_at(table, noise, k, l2, learned) for noise in LAMBDAS]


def _box(at_index: np.ndarray, at_queries: np.ndarray, labels: np.ndarray, k: int) -> PosteriorBox:
    search = neighbor_search(at_index, labels, k, 2, len(at_queries), seed=SEED)
    counts = count_labels(search, at_queries)
    totals = counts.sum(axis=1, dtype=np.int32)
    return PosteriorBox.from_counts(counts, totals, ErrorBudget.of(DELTA).per_query)


def _score(table: Table, fitting: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the learned metric: a boosted model's score, fitted on rows of its own."""
    some = table.features.take(fitting[:100_000])
    design = BoostingMatrix.fit(some)
    model = HistGradientBoostingClassifier(max_iter=80, random_state=0)
    model.fit(design.transform(some), table.labels[fitting[:100_000]])

    def at(rows: np.ndarray) -> np.ndarray:
        return score_space(model.predict_proba(design.transform(table.features.take(rows))))

    return at


def _at(table: Table, noise: float, k: int, l2: PosteriorBox, learned: PosteriorBox) -> Found:
    channel = RandomizedResponse((0, 1), noise).channel.matrix
    n, counts = len(table.labels), np.bincount(table.labels, minlength=2)
    budget, prior = ErrorBudget.of(DELTA), counts / n
    tail = budget.prior / 4
    low, high = clopper_pearson_lower(counts, n, tail), clopper_pearson_upper(counts, n, tail)

    def curve(box: PosteriorBox) -> Exceedance:
        losses = mean_loss(box.estimate, prior, channel)
        lower = mean_loss_lower(box, low, high, channel)
        return exceedance(losses, np.minimum(lower, losses), budget, GRID)

    truth = None
    if table.posterior is not None:
        both = np.stack([1 - table.posterior, table.posterior], axis=1)
        losses = np.sort(mean_loss(both, prior, channel))
        truth = 1 - np.searchsorted(losses, GRID, side="left") / len(losses)
    return Found(table.name, noise, k, curve(l2), curve(learned), truth)


def _print_shares(found: list[Found]) -> None:
    print("\nShare of people who lose at least τ: estimate (lower bound at 99 %), and J itself\n")
    print("| table | k | λ | ε | τ | by L2 | by a learned score | exact |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for one in found:
        epsilon = RandomizedResponse((0, 1), one.noise).epsilon
        for beyond in (0.5, 1.0, 2.0, 3.0):
            at = int(np.ceil(10 * (epsilon + beyond)))
            exact = "–" if one.truth is None else f"{one.truth[at]:.3f}"
            cells = " | ".join(
                f"{curve.value[at]:.3f} ({curve.low[at]:.3f})" for curve in (one.l2, one.learned)
            )
            print(
                f"| {one.table} | {one.k} | {one.noise:g} | {epsilon:.2f} | {GRID[at]:.1f} "
                f"| {cells} | {exact} |"
            )


def _print_claims(found: list[Found]) -> None:
    print("\n| published | measured |\n|---|---|")
    rows = (
        ("kag14", 0.01, 6.0, "kag14, λ = 0.01: P(ν ≥ 6) ≈ 0.05, at ε ≈ 5.19 (log 199 is 5.29)"),
        ("kdd12", 0.001, 9.5, "kdd12, λ = 0.001: many people lose almost 10, at ε ≈ 7.6"),
    )
    for name, noise, loss, words in rows:
        one = next((f for f in found if f.table == name and f.noise == noise), None)
        text = "not measured: needs the file" if one is None else f"Ĵ({loss:g}) = "
        if one is not None:
            at = int(10 * loss)
            text += f"{one.l2.value[at]:.3f}, at least {one.l2.low[at]:.3f}"
        print(f"| {words} | {text} |")


def _panels(found: list[Found]) -> Iterator[Panel]:
    """One panel a λ: the lower bound by L2 of every table, as published, and J of the mixture."""
    for noise in LAMBDAS:
        curves = [one for one in found if one.noise == noise]
        lines = [Line(f"{one.table}, at least", GRID[::2], one.l2.low[::2]) for one in curves]
        lines += [
            Line(f"{one.table}, exact", GRID[::2], one.truth[::2])
            for one in curves
            if one.truth is not None
        ]
        words = f"λ = {noise:g}, ε = {RandomizedResponse((0, 1), noise).epsilon:.2f}"
        yield Panel(words, "τ in nats", "share of people who lose τ or more", lines, (0, 1))


if __name__ == "__main__":
    main()
