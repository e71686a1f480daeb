"""How many people lose how much: figure 2 of Busa-Fekete et al. (2023), Ĵ(τ) for several λ."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.planted import PUBLIC, table_of
from benchmarks.runner import DATA, Array, Rng, Rows, case, draw, heads
from ldpaudit.datasets import read_release
from ldpaudit.estimators.instance_loss import (
    ErrorBudget,
    PosteriorBox,
    exceedance,
    mean_loss,
    mean_loss_lower,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.metric import fit_metric, score_space
from ldpaudit.estimators.neighbors import count_labels, default_neighbors, neighbor_search
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.encoding import BoostingMatrix
from ldpaudit.release import FeatureTable

SEED, DELTA, QUERIES = 20230724, 0.01, 20_000
GRID = np.arange(0, 241) / 10
# Of the published tables, which are not shipped: the neighbourhood sizes and claims.
PUBLISHED = {"kag14": 10_000, "kdd12": 10_000, "kdd10": 10_000, "susy": 1_000}
CLAIMS = {
    ("kag14", 0.01): (6.0, "P(ν ≥ 6) ≈ 0.05, at ε ≈ 5.19 (log 199 is 5.29)"),
    ("kdd12", 0.001): (9.5, "many people lose almost 10, at ε ≈ 7.6"),
}


class Table(NamedTuple):
    """Features, labels, and, where they are known, the published k and P(Y = 1 | x)."""

    features: FeatureTable
    labels: Array
    neighbors: int | None = None
    posterior: Array | None = None


def mixture(rows: int, rng: Rng) -> Table:
    """Return two Gaussians 18 wide that differ by 0.5 in each coordinate, as balanced as SUSY."""
    labels = (rng.random(rows) < 0.457).astype(np.int32)
    x = rng.normal(size=(rows, 18)) + 0.25 * (2 * labels[:, None] - 1)
    return Table(table_of(x), labels, 1_000, expit(0.5 * x.sum(axis=1) + logit(0.457)))


def tables(names: tuple[str, ...], rows: int, data: Path) -> Iterator[tuple[str, Table]]:
    """Yield tables by name, or by the path of a published one: NAME=PATH."""
    for words in names:
        name, _, path = words.partition("=")
        if name == "Gaussian mixture":
            yield name, mixture(rows or 1_000_000, np.random.default_rng(SEED))
            continue
        label, drop = PUBLIC.get(name, ("label", ()))[0], ("split",) if name == "adult" else ()
        read: Any = read_release(Path(path or data / f"{name}.parquet"), label=label, drop=drop)
        some = np.arange(0, len(read.release), max(1, len(read.release) // rows) if rows else 1)
        features = read.release.features.take(some)
        labels, posterior = np.asarray(read.release.released)[some], None
        if name == "military":
            both = np.hstack([features.numeric, features.categorical])
            cell = np.unique(both, axis=0, return_inverse=True)[1].ravel()
            posterior = (np.bincount(cell, labels) / np.bincount(cell))[cell]
        yield name, Table(features, labels, PUBLISHED.get(name), posterior)


def boxes(table: Table) -> tuple[int, PosteriorBox, PosteriorBox]:
    """Return k, and bounds of P(y | x) by neighbours in L2 and by a boosted model's score.

    The model, the rows that are looked at, and people who are asked are different rows.
    """
    rng, found = np.random.default_rng(SEED), []
    fitting, index, asking = np.array_split(rng.permutation(len(table.labels)), 3)
    queries, k = asking[:QUERIES], table.neighbors or default_neighbors(len(index), 2)
    metric, some = fit_metric(table.features, "l2", rng=rng), fitting[:100_000]
    fitted = table.features.take(some)
    design = BoostingMatrix.fit(fitted)
    model = HistGradientBoostingClassifier(max_iter=80, random_state=0)
    model.fit(design.transform(fitted), table.labels[some])

    def score(rows: FeatureTable) -> Any:
        return score_space(model.predict_proba(design.transform(rows)))

    wide = max(k, default_neighbors(len(index), 1))
    for space, size in ((metric.transform, k), (score, wide)):
        at_index, at_queries = (space(table.features.take(r)) for r in (index, queries))
        search = neighbor_search(at_index, table.labels[index], size, 2, len(queries), seed=SEED)
        counts = count_labels(search, at_queries)
        totals = counts.sum(axis=1, dtype=np.int32)
        found.append(PosteriorBox.from_counts(counts, totals, ErrorBudget.of(DELTA).per_query))
    return k, found[0], found[1]


@case(names=("skin", "Gaussian mixture"), rows=2000, noises=(0.1,))
def papers_tdr_figure_2(
    names: tuple[str, ...] = ("skin", "military", "adult", "Gaussian mixture"),
    noises: tuple[float, ...] = (0.1, 0.01, 0.001),
    rows: int = 0,
    svg: str = "",
    data: Path = DATA,
) -> Rows:
    """Figure 2 of TDR: who loses how much, J(τ) for several λ.

    The share of people whose instance-based privacy loss is at least τ, by neighbours' labels, with
    δ = 0.01: estimate (lower bound at 99 %), and J itself where it is known. Whoever has published
    tables names them, svmlight or with a column "label": ``--names kag14=FILE kdd12=FILE``.
    """
    yield heads("table", "k", "λ", "ε|.2f", "τ|.1f", "by L2", "by a learned score", "exact|.3f")
    panels: dict[float, dict[str, Any]] = {noise: {} for noise in noises}
    claims, budget = [], ErrorBudget.of(DELTA)
    for name, table in tables(names, rows, data):
        k, l2, learned = boxes(table)
        n, counts, tail = (
            len(table.labels),
            np.bincount(table.labels, minlength=2),
            budget.prior / 4,
        )
        low, high = (f(counts, n, tail) for f in (clopper_pearson_lower, clopper_pearson_upper))
        for noise in noises:
            mechanism = RandomizedResponse((0, 1), noise)
            channel, epsilon, truth = mechanism.channel.matrix, mechanism.epsilon, None
            curves: list[Any] = []
            for box in (l2, learned):
                losses = mean_loss(box.estimate, counts / n, channel)
                lower = mean_loss_lower(box, low, high, channel)
                curves.append(exceedance(losses, np.minimum(lower, losses), budget, GRID))
            by_l2, by_score = curves
            panels[noise][f"{name}, at least"] = (GRID[::2], by_l2.low[::2])
            if table.posterior is not None:
                both = np.stack([1 - table.posterior, table.posterior], axis=1)
                losses = np.sort(mean_loss(both, counts / n, channel))
                truth = 1 - np.searchsorted(losses, GRID, side="left") / len(losses)
                panels[noise][f"{name}, exact"] = (GRID[::2], truth[::2])
            for beyond in (0.5, 1.0, 2.0, 3.0):
                at = int(np.ceil(10 * (epsilon + beyond)))
                cells = [f"{c.value[at]:.3f} ({c.low[at]:.3f})" for c in (by_l2, by_score)]
                exact = None if truth is None else truth[at]
                yield name, k, noise, epsilon, GRID[at], *cells, exact
            if (name, noise) in CLAIMS:
                loss, words = CLAIMS[name, noise]
                value, low = by_l2.value[int(10 * loss)], by_l2.low[int(10 * loss)]
                measured = f"Ĵ({loss:g}) = {value:.3f}, at least {low:.3f}"
                claims.append(f"{name}, λ = {noise:g}: published {words}; measured {measured}")
    yield from claims or ["What is published of kag14 and kdd12 needs their files."]
    titles = {
        noise: f"λ = {noise:g}, ε = {RandomizedResponse((0, 1), noise).epsilon:.2f}"
        for noise in noises
    }
    axes = ("τ in nats", "share of people who lose τ or more")
    drawn = [(titles[noise], *axes, lines) for noise, lines in panels.items()]
    draw(svg, drawn, columns=len(noises), y=(0, 1))
