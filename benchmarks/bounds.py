"""How strong certified lower bounds are, and how often they lie above the truth."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from benchmarks.planted import declaration, gaussian, release_of, released, table_of
from benchmarks.runner import DATA, Array, Rng, Rows, case, heads, timed
from ldpaudit.audits.instance_loss.neighbourhoods import measured_channel, measured_shares
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.estimators.epsilon.bounds import accuracy_epsilon, event_epsilon
from ldpaudit.estimators.epsilon.release_only import SplitRows, release_only_evidence
from ldpaudit.estimators.epsilon.strongest import (
    METHODS,
    design_bounds,
    epsilon_evidence,
    gather_evidence,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.mean_loss import HeldOut, certified_mean_loss, claimed_mean_loss
from ldpaudit.estimators.renyi import Scores, bounds_on, renyi_points, split_scores
from ldpaudit.extras.kinds.mechanisms.unbiased import optimal_unbiased
from ldpaudit.extras.several.files import ColumnReleases
from ldpaudit.extras.several.joint import JointRR, RandomSampling
from ldpaudit.extras.several.person.answers import Answers
from ldpaudit.extras.several.person.audit import AUDIT, REFUTED_COLUMNS, evidence_of
from ldpaudit.extras.several.person.noise import columns_noise
from ldpaudit.extras.several.related import OverReleases
from ldpaudit.mechanisms import (
    DiscreteLaplace,
    DiscreteStaircase,
    LabelRange,
    RandomizedResponse,
    from_declaration,
)
from ldpaudit.mechanisms.joint import IndependentColumns
from ldpaudit.mechanisms.noise import Exponential

ALPHA = 0.05


def epsilon_of(channel: Array) -> float:
    """Return the exact ε of a channel, rows given the label."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(np.log(channel.max(axis=0) / channel.min(axis=0))))


ASYMMETRIC = ((0.6, 0.3, 0.1), (0.25, 0.5, 0.25), (0.2, 0.2, 0.6))
ROW, RARE = (0.4, 0.25, 0.2, 0.11, 0.04), 0.001 * math.exp(2)
# Channels whose ε is carried by few entries, the shares of the labels, and rows.
FEW_ENTRIES: dict[str, tuple[Any, tuple[float, ...], int]] = {
    "asymmetric 3 × 3": (ASYMMETRIC, (1 / 3, 1 / 3, 1 / 3), 3000),
    "the same, 97 % in one class": (ASYMMETRIC, (0.97, 0.015, 0.015), 3000),
    "a rare output, .001 against .02": (
        ((0.5, 0.499, 0.001), (0.49, 0.49, 0.02)),
        (0.5, 0.5),
        3000,
    ),
    "2 × 2, .95/.60, 99 : 1": (((0.95, 0.05), (0.6, 0.4)), (0.99, 0.01), 3000),
    "2 × 2, .95/.60, 30 : 70": (((0.95, 0.05), (0.6, 0.4)), (0.3, 0.7), 400),
    "4 labels × 5 outputs": ([np.roll(ROW, i) for i in range(4)], (0.4, 0.3, 0.2, 0.1), 3000),
    "outputs of .1 %": (
        ((0.6, 0.396, *[0.001] * 4), (0.5, 0.5 - 4 * RARE, *[RARE] * 4)),
        (0.5, 0.5),
        5000,
    ),
    "one output of .1 %": (((0.6, 0.399, 0.001), (0.5, 0.5 - RARE, RARE)), (0.5, 0.5), 5000),
    "2 labels, 3 outputs": (((0.5, 0.3, 0.2), (0.3, 0.3, 0.4)), (0.3, 0.7), 2000),
    "constant": (((0.8, 0.2), (0.8, 0.2)), (0.9, 0.1), 2000),
}


def settings() -> Iterator[tuple[str, Array, Any, int]]:
    """Yield channels by name, with the shares of the labels and the number of rows."""
    flat = [np.full(k, 1 / k) for k in range(1, 31)]
    for k, epsilon, n in product((2, 30), (1.0, 3.0), (600, 3000, 5000, 20_000)):
        rr = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel.matrix
        zipf = 1 / np.arange(1, k + 1)
        yield f"RR, k = {k}", rr, zipf / zipf.sum(), n
    for k, epsilon, n in ((2, 1.0, 1000), (10, 4.0, 2000)):
        rr = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel.matrix
        yield f"RR, k = {k}, equal", rr, flat[k - 1], n
    random = np.random.default_rng(1).uniform(1, 5, (30, 30))
    yield "random 30 × 30", random / random.sum(axis=1, keepdims=True), flat[29], 20_000
    for name, (rows, shares, n) in FEW_ENTRIES.items():
        yield name, np.array(rows), shares, n
    grid = LabelRange(0.0, 10.0, 1.0)
    unbiased = optimal_unbiased(tuple(range(11)), flat[10], 2.0).mechanism
    bounded = (DiscreteLaplace(grid, 2.0, True), DiscreteStaircase(grid, 2.0, True))
    for mechanism in (*bounded, Exponential(grid, 2.0), unbiased):
        yield mechanism.name, mechanism.channel.matrix, flat[10], 5000


@case(tables=3, sizes=(1000,), first=2)
def epsilon_bounds(
    tables: int = 3000,
    sizes: tuple[int, ...] = (10**3, 10**4, 10**5, 10**6),
    first: int = 99,
) -> Rows:
    """How strong are the lower bounds on ε, how often do they miss, and how fast are they?

    Expected 95 % bounds of binary randomized response with equal classes, each method at its own
    level, in brackets the strongest with its correction; then the milliseconds of the exact odds
    ratio; then shares of tables in which a 95 % bound lies above ε (and the mean bound). Without a
    claim only one table in twenty is bounded: each has its own design, which takes long.
    """
    epsilons = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
    yield heads("n", *(f"ε = {epsilon:g}" for epsilon in epsilons), "odds ratio, ms|.1f")
    for n in sizes:
        cells, halves = [], np.array([n // 2, n // 2])
        for epsilon in epsilons:
            right = round(n / (1 + math.exp(-epsilon)))
            own, shared = (accuracy_epsilon(right, halves, a * ALPHA) for a in (1, 0.9))
            cells.append(f"{own:.3f} ({shared:.3f})")
        right = int(0.73 * n / 2)
        table = np.array([[right, n // 2 - right], [n // 2 - right, right]])
        yield n, *cells, 1e3 * timed(partial(event_epsilon, table, 0.0, ALPHA), 5)[1]
    yield f"Share of {tables:,} tables in which a 95 % bound lies above ε, and mean bound"
    columns = (*METHODS, "strongest", "no claim")
    yield heads("channel", "ε|.2f", "n", "primary", *columns)
    for name, channel, shares, n in list(settings())[:first]:
        rng, sizes_of = np.random.default_rng(7), np.round(n * np.asarray(shares)).astype(np.int64)
        design: Any = design_bounds(sizes_of, channel)
        found: dict[str, list[float]] = {column: [] for column in columns}
        for number in range(tables):
            drawn = [rng.multinomial(s, row) for s, row in zip(sizes_of, channel, strict=True)]
            counts = np.array(drawn)
            evidence = gather_evidence(counts, design, rng)
            for method in METHODS:
                found[method].append(evidence.by_method(method, ALPHA).epsilon)
            found["strongest"].append(evidence.bound(ALPHA).epsilon)
            if number % 20 == 0:
                blind: Any = epsilon_evidence(counts, None, rng)
                found["no claim"].append(blind.bound(ALPHA).epsilon)
        limit = epsilon_of(channel)
        above = [np.mean(np.array(v) > limit + 1e-9) for v in found.values()]
        means = [float(np.mean(v)) for v in found.values()]
        shown = [f"{a:.3f} ({m:.3f})" for a, m in zip(above, means, strict=True)]
        yield name, limit, n, design.primary, *shown


def points_of(data: Path, name: str) -> tuple[Array, Array]:
    """Return skin, or MNIST in 30 principal components: is the digit 5 or more?"""
    if name == "skin":
        table = pd.read_parquet(data / "skin.parquet")
        return table.drop(columns="label").to_numpy(np.float32), table["label"].to_numpy() == 1
    files = np.load(data / "mnist.npz")
    images = files["x_train"].reshape(60_000, -1).astype(np.float32)
    points = PCA(30, random_state=0, svd_solver="randomized").fit_transform(images)
    return points.astype(np.float32), files["y_train"] >= 5


@case(rows=1500, seeds=1, names=("skin",), epsilons=(2.0,))
def release_only(
    names: tuple[str, ...] = ("skin", "MNIST ≥ 5"),
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0),
    seeds: int = 3,
    rows: int = 0,
    data: Path = DATA,
) -> Rows:
    """What does the release alone give away? 95 % bounds on real data, means over seeds."""
    reference = {
        "skin": {1.0: 0.931, 2.0: 1.892, 4.0: 3.709},
        "MNIST ≥ 5": {1.0: 0.869, 2.0: 1.754, 4.0: 3.39},
    }
    bounds = [f"{part}|.3f" for part in ("balls", "scores", "both", "share of ε")]
    yield heads("data", "ε", "reference", *bounds, "s|.1f", "model, s|.1f")
    for name in names:
        points, truth = (part[: rows or None] for part in points_of(data, name))
        for epsilon in epsilons:
            runs = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                mechanism = RandomizedResponse.from_epsilon((0, 1), epsilon)
                release = released(table_of(points), truth, mechanism, rng, known=False)
                context = AuditContext(release, mechanism, Plan(seed=seed, threads=1))
                start = time.perf_counter()
                scores = cross_fitted_posterior(context, "released")
                fitted, found = time.perf_counter() - start, []
                split = SplitRows(release.released, 2, context.halves())
                for given, model in ((points, None), (None, scores), (points, scores)):
                    start = time.perf_counter()
                    evidence = release_only_evidence(given, split, rng=rng, scores=model)
                    found.append(evidence.bound(ALPHA).epsilon)
                runs.append([*found, found[-1] / epsilon, time.perf_counter() - start, fitted])
            yield name, epsilon, reference[name].get(epsilon), *np.mean(runs, axis=0)


@case(rows=(2000,), seeds=2)
def instance_loss(
    rows: tuple[int, ...] = (5_000, 20_000, 100_000, 1_000_000), seeds: int = 40
) -> Rows:
    """How much of E[ν] is certified? Mean share of it at 95 %.

    A mixture of two Gaussian classes in 18 dimensions whose means are 0.25 apart in each, P(y = 1)
    = 0.457, labels flipped with probability 0.1: E[ν] = 18 · 0.25²/2 + 0.8 log 9 = 2.3203 nats
    exactly. Half of the rows fit a logistic regression (at most 200,000 of them) and a channel; the
    other half is bounded. Under the claim: by an outsider, the model carried through the channel.
    """
    flip, true = 0.1, 18 * 0.25**2 / 2 + 0.8 * math.log(9)
    channel = np.array([[1 - flip, flip], [flip, 1 - flip]])
    parts = [f"{part}|.4f" for part in ("certified", "both halves", "under the claim")]
    yield heads("rows", "seeds", *parts, "certified above E[ν]")
    for n in rows:
        runs = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            points, labels, _ = gaussian(n, 18, rng)
            noisy = np.where(rng.random(n) < flip, 1 - labels, labels).astype(np.int32)
            halves, held = (slice(0, n // 2), slice(n // 2, n)), []
            for fit, test in (halves, halves[::-1]):
                some = slice(fit.start, min(fit.stop, fit.start + 200_000))
                model = LogisticRegression(C=1.0).fit(points[some], labels[some])
                posterior = np.maximum(model.predict_proba(points[test]), 1e-9)
                shares = measured_shares(labels[fit], 2)
                made = measured_channel(labels[fit], noisy[fit], 2, 2)
                held.append(HeldOut(posterior, labels[test], noisy[test], shares, made))
            one, other = (certified_mean_loss(part, rng=rng) for part in held)
            seen = held[0].posterior @ channel
            claimed = claimed_mean_loss(seen, held[0].released, channel, held[0].prior, rng=rng)
            both = (one.at(ALPHA / 2) + other.at(ALPHA / 2)) / 2
            runs.append([one.at(ALPHA), both, claimed.at(ALPHA)])
        yield n, seeds, *(np.mean(runs, axis=0) / true), sum(run[0] > true for run in runs)


@case(rows=2000, seeds=2, dimensions=(1,), orders=(2.0,), divergences=(0.5,))
def renyi(
    rows: int = 100_000,
    seeds: int = 200,
    dimensions: tuple[int, ...] = (1, 10),
    orders: tuple[float, ...] = (1.1, 1.5, 2.0, 3.0, 5.0, 10.0),
    divergences: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0),
) -> Rows:
    """How much of a Rényi divergence is certified? Mean shares of D_α.

    P = N(μ, I), Q = N(0, I) in d dimensions with D_α = α‖μ‖²/2 as wanted. Half of the rows fit a
    logistic regression, a cheap discriminator whose form is the true one; the other half is bounded
    at 95 %. Beside it what a score table gives: 50 quantile cells of the same score, with
    Clopper–Pearson bounds for every cell's two shares at a level shared by all of them; and the
    Donsker–Varadhan form with plain means (plug-in).
    """
    parts = [f"{part}|.3f" for part in ("certified", "cells", "estimate", "its spread", "plug-in")]
    yield heads("d", "α", "D_α", "above the truth", *parts, "supported|.2f")
    for d, order, divergence in product(dimensions, orders, divergences):
        runs, half = [], rows // 2
        for seed in range(seeds):
            rng = np.random.default_rng([seed, d, int(100 * order), int(100 * divergence)])
            p, q = rng.standard_normal((rows, d)), rng.standard_normal((rows, d))
            p += math.sqrt(2 * divergence / order / d)
            both = np.concatenate([p[:half], q[:half]])
            model = LogisticRegression().fit(both, np.repeat([1, 0], half))
            found = Scores(*(model.decision_function(part[half:]) for part in (p, q)))
            certified = bounds_on(*split_scores(found, rng=rng), [order])[0].at(ALPHA)
            point = renyi_points(found, [order])[0]
            means = np.exp((order - 1) * found.p).mean(), np.exp(order * found.q).mean()
            plug_in = order / (order - 1) * np.log(means[0]) - np.log(means[1])
            runs.append(
                [certified, cell_bound(found, order), point.value, plug_in, point.supported]
            )
        every = np.array(runs, dtype=float)
        shares = every[:, :4] / divergence
        certified, cells, value, plug = shares.mean(axis=0)
        above = int((shares[:, 0] > 1).sum())
        numbers = (certified, cells, value, shares[:, 2].std(), plug)
        yield d, order, divergence, above, *numbers, every[:, 4].mean()


def cell_bound(found: Scores, order: float, number: int = 50) -> float:
    """Return Σ_c p_c^α q_c^{1−α} from below with a bound for each cell's shares."""
    sides = [np.split(side, [len(side) // 10]) for side in (found.p, found.q)]
    first = np.concatenate([side[0] for side in sides])
    edges = np.quantile(first, np.arange(1, number) / number)
    p, q = (np.bincount(np.searchsorted(edges, s[1]), minlength=number) for s in sides)
    tail = ALPHA / (2 * number)
    low, high = clopper_pearson_lower(p, p.sum(), tail), clopper_pearson_upper(q, q.sum(), tail)
    return max(0.0, math.log(float((low**order * high ** (1 - order)).sum())) / (order - 1))


# --- one person's columns, or releases, together


def apart(sizes: tuple[int, ...], epsilons: tuple[float, ...]) -> IndependentColumns:
    """Return columns that are released independently of each other."""
    each = zip(sizes, epsilons, strict=True)
    return IndependentColumns(
        tuple(RandomizedResponse.from_epsilon(tuple(range(k)), e) for k, e in each)
    )


class Vectors(NamedTuple):
    """What is claimed of several columns, how true vectors look, and what really happens."""

    claim: Any
    correlated: bool = False
    release: Any = None
    epsilon: float = math.nan


def by_one_uniform(claim: Any, labels: Array, rng: Rng) -> Array:
    """Draw both columns' labels by inversion from the same uniform numbers."""
    u = rng.random(len(labels))[:, None]
    columns = [np.cumsum(one.channel.matrix, axis=1) for one in claim.columns]
    drawn = [(u > c[labels[:, a]][:, :-1]).sum(axis=1) for a, c in enumerate(columns)]
    return np.stack(drawn, axis=1).astype(np.int32)


def by_one_coin(claim: Any, labels: Array, rng: Rng) -> Array:
    """Let one coin keep all columns; else each is drawn on its own."""
    keep = rng.random((len(labels), 1)) >= claim.columns[0].noise
    anew = [rng.integers(0, len(one.classes), len(labels)) for one in claim.columns]
    return np.where(keep, labels, np.stack(anew, axis=1)).astype(np.int32)


TWO, MIXED, FIVE = apart((2, 2), (1, 1)), apart((2, 5), (1, 1)), apart((2,) * 5, (1,) * 5)
COIN = RandomizedResponse.from_epsilon((0, 1), 1.0).noise
VECTORS = {
    "2 columns of 2, ε = 1 each": Vectors(TWO),
    "the same, skewed and correlated": Vectors(TWO, True),
    "2 columns of 4 and 8, ε = 1 and 0.5, correlated": Vectors(apart((4, 8), (1, 0.5)), True),
    "3 columns of 2, 3, 5, ε = 2, 1, 0.5, correlated": Vectors(apart((2, 3, 5), (2, 1, 0.5)), True),
    "5 columns of 2, ε = 1 each": Vectors(FIVE),
    "5 columns of 2, skewed and correlated": Vectors(FIVE, True),
    "5 columns of 4, ε = 1 each": Vectors(apart((4,) * 5, (1,) * 5)),
    "5 columns of 2 … 6, ε = 0.5 … 1.5, correlated": Vectors(
        apart((2, 3, 4, 5, 6), (0.5, 1, 1, 1.5, 0.5)), True
    ),
    "joint RR on 2 · 3 · 2, ε = 2, correlated": Vectors(
        JointRR((("a", "b"), ("a", "b", "c"), ("a", "b")), 2.0), True
    ),
    "RS+FD on 3 columns of 4, published ε = 1": Vectors(RandomSampling((tuple("abcd"),) * 3, 1.0)),
    "one uniform number for 2 columns of 2": Vectors(TWO, False, by_one_uniform, math.inf),
    "one uniform number for columns of 2 and 5": Vectors(MIXED, True, by_one_uniform, math.inf),
    "one coin for 2 columns of 2": Vectors(
        TWO, True, by_one_coin, epsilon_of((1 - COIN) * np.eye(4) + COIN / 4)
    ),
}


def one_vector(setting: Vectors, n: int, seed: int) -> tuple[float, float, float, float, float]:
    """Return the strongest bound, by sums and as one label, and p-values of the draws.

    The p-values are with true vectors and without.
    """
    rng = np.random.default_rng(seed)
    columns = setting.claim.columns
    sizes = [len(one.classes) for one in columns]
    common, own = rng.random(n), rng.random((n, len(sizes)))
    place = (0.6 * common[:, None] + 0.4 * own) ** 1.7 if setting.correlated else own
    labels = np.floor(np.array(sizes) * place).astype(np.int32)
    made = setting.release or (lambda claim, y, rng: claim.sample(y, rng))
    drawn, nothing, contexts = made(setting.claim, labels, rng), table_of(np.zeros((n, 0))), []
    for a, claim in enumerate(columns):
        release = release_of(nothing, labels[:, a], drawn[:, a], claim.classes)
        contexts.append(AuditContext(release, claim, Plan(seed=0)))
    seen = Answers(tuple(contexts), setting.claim)
    p_value, _ = columns_noise(seen, rng)
    alone = tuple(replace(c, release=replace(c.release, truth=None)) for c in contexts)
    blind, _ = columns_noise(Answers(alone, seen.joint), rng)
    evidence: Any = evidence_of(seen, rng)
    assert p_value is not None
    assert blind is not None
    evidence = evidence.without_sums() if p_value <= REFUTED_COLUMNS else evidence
    added = evidence.added_up(ALPHA).epsilon if evidence.added else math.nan
    joint = evidence.as_one(ALPHA).epsilon if evidence.codes else math.nan
    return evidence.bound(ALPHA).epsilon, added, joint, p_value, blind


@case(draws=2, rows=500, settings=tuple(VECTORS)[:1])
def person_columns(
    draws: int = 20, rows: int = 10_000, settings: tuple[str, ...] = tuple(VECTORS)
) -> Rows:
    """How much of ε of several private columns is certified, and are shared draws found?

    95 % bounds; true labels are drawn each time and released by mechanisms whose exact ε is known.
    No features: what is bounded is the noise on the labels. Draws are refuted at 5 %.
    """
    counts = ("above the true ε", "above the claim", "draws refuted", "without true vectors")
    bounds = ("certified|.2f", "of the true ε|.3f", "added up|.2f", "as one label|.2f")
    yield heads("what", "ε claimed|.3g", "ε true|.3g", *bounds, *counts, "s|.2f")
    for name in settings:
        setting, start = VECTORS[name], time.process_time()
        found = np.array([one_vector(setting, rows, seed) for seed in range(draws)])
        seconds = (time.process_time() - start) / draws
        claim, best = setting.claim.epsilon, found[:, 0]
        true = claim if math.isnan(setting.epsilon) else setting.epsilon
        own = [None if np.isnan(v).all() else float(np.nanmean(v)) for v in found.T[1:3]]
        share = None if math.isinf(true) else best.mean() / true
        above = [int((best > limit + 1e-9).sum()) for limit in (true, claim)]
        refuted = [int((p <= ALPHA).sum()) for p in found.T[3:]]
        yield name, claim, true, best.mean(), share, *own, *above, *refuted, seconds


def releases_of(noise: str, number: int, epsilon: float, people: int, rng: Rng) -> ColumnReleases:
    """Draw releases by binary randomized response; a few labels change from one to the next."""
    classes = ("no", "yes")
    mechanism = RandomizedResponse.from_epsilon(classes, epsilon)
    truth = (rng.random(people) < 0.35).astype(np.int32)
    nothing, seed = table_of(np.zeros((people, 0))), int(rng.integers(1 << 32))
    releases: list[Any] = []
    for place in range(number):
        before = truth
        if place:
            truth = np.where(rng.random(people) < 0.05, 1 - truth, truth).astype(np.int32)
        again = np.random.default_rng(seed) if noise == "reused" else rng
        answers = mechanism.sample(truth, again)
        if place and noise == "remembered":
            answers = np.where(truth == before, releases[-1].released, answers)
        claim = declaration(classes, epsilon)
        releases.append(release_of(nothing, truth, answers, classes, claim))
    rows = np.arange(people)[:, None].repeat(number, axis=1)
    return ColumnReleases(tuple(releases), rows)


@case(draws=1, people=300, numbers=(2,))
def person_releases(
    draws: int = 100,
    people: int = 5_000,
    epsilon: float = 1.0,
    numbers: tuple[int, ...] = (2, 4, 8),
) -> Rows:
    """Are fresh and remembered answers of several releases told apart, and how strong are bounds?

    Each release has true labels, a twentieth of which change from one to the next; told apart also
    without them. The bounds at 95 % are of all releases together.
    """
    told = ("told apart|.0%", "without true labels|.0%")
    yield heads("noise", "releases", *told, "certified/true|.3f", "bound above truth")
    words = {"looks fresh": "fresh", "looks remembered": "remembered", "used again": "reused"}
    for noise, number in product(("fresh", "remembered", "reused"), numbers):
        found = []
        for draw in range(draws):
            rng = np.random.default_rng([draw, number, len(noise)])
            releases = releases_of(noise, number, epsilon, people, rng)
            blind = tuple(replace(r, truth=None) for r in releases.releases)
            hidden = ColumnReleases(blind, releases.rows)
            claimed: Any = "remembered" if noise == "remembered" else "fresh"
            told_apart, share = [], math.nan
            for seen, way in ((releases, None), (hidden, None), (releases, claimed)):
                last = seen.releases[-1]
                assert last.declaration is not None
                claim = from_declaration(last.declaration, last.classes)
                related = OverReleases(seen, way)
                finding = AUDIT.run(AuditContext(last, claim, Plan(draw), related))
                text = " ".join(note.text for note in finding.notes)
                looks = next((name for said, name in words.items() if said in text), "unclear")
                told_apart.append(looks == noise)
                bounds = [e.value for e in finding.estimates if e.id == "person.epsilon_lower"]
                if way and bounds and noise != "reused":
                    share = bounds[0] / (epsilon * (1 if noise == "remembered" else number))
            found.append([*told_apart[:2], share])
        shares = [row[2] for row in found if not math.isnan(row[2])]
        bound: Any = (None, None)
        if shares:
            bound = (np.mean(shares), f"{sum(s > 1 for s in shares)} of {len(shares)}")
        told_share = np.mean([row[:2] for row in found], axis=0)
        yield noise, number, *told_share, *bound
