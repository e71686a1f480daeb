"""What becomes of learners, generators and designs, beside what a user would take instead."""

import json
import math
import multiprocessing
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from scipy.stats import binom, ks_2samp
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score

import ldpaudit
from benchmarks.planted import numbers_and_codes, public, table_of, write, zero_or_nine
from benchmarks.runner import DATA, LDPAUDIT, Array, Rng, Rows, case, heads, ran, timed
from benchmarks.speed import weeks_like
from ldpaudit.commands.utility.companions import other_columns
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.datasets import read_file_columns
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.estimators.synthetic import count_memorisation
from ldpaudit.learners import IWPClassifier, IWPRegressor
from ldpaudit.mechanisms import Channel, ExplicitChannel, RandomizedResponse
from ldpaudit.mechanisms.bins import debiased_outputs
from ldpaudit.mechanisms.gaussian import GaussianRR, classical_sigma
from ldpaudit.mechanisms.joint import IndependentColumns, JointRR, RandomSampling, marginal_claims
from ldpaudit.mechanisms.response import lambda_of_epsilon
from ldpaudit.mechanisms.unbiased import closed_form, optimal_unbiased
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.mechanisms.with_features import DoubleRR
from ldpaudit.models.iwp import Objective
from ldpaudit.models.iwp_losses import ExponentialLoss, LogLoss, QuadraticLoss
from ldpaudit.release import Declaration, FeatureTable, joined
from ldpaudit.synthesis import generator

SGD: dict[str, Any] = {"ridge": 5.0, "radius": 0.5, "step": 1e-4}
SGD |= {"fit_intercept": False, "shuffle": False}
# The ridge keeps the parameters far inside the ball, at whose edge the exponential loss is noise.
LOSSES: dict[str, Any] = {
    "exponential": ExponentialLoss(worst=math.inf),
    "quadratic": QuadraticLoss(),
    "log": LogLoss(),
}


def classified(rows: int, p: int, seed: int) -> tuple[Array, Array]:
    """Return the paper's synthetic rows, scaled to [-1, 1]^p, in random order, and labels."""
    shape = {"n_informative": 2, "n_redundant": 0, "n_clusters_per_class": 1}
    X, y = make_classification(rows, p, random_state=seed, **shape)
    low, high = X.min(axis=0), X.max(axis=0)
    order = np.random.default_rng(seed).permutation(rows)
    return (2 * (X - low) / (high - low) - 1)[order], y[order].astype(np.int32)


def with_noise(X: Array, y: Array, epsilon: float, rng: Rng) -> tuple[Any, Array, Array]:
    """Release features (classical σ) and labels, half of ε for each."""
    half, radius = epsilon / 2, math.sqrt(X.shape[1])
    sigma = classical_sigma(half, 1e-5, 2 * radius)
    mechanism = GaussianRR((0, 1), lambda_of_epsilon(half, 2), radius, sigma, half, 1e-5)
    return mechanism, mechanism.release_features(X, rng, simulation=True), mechanism.sample(y, rng)


def excess(loss: Any, X: Array, answers: Array, thetas: list[Array]) -> list[float]:
    """Return the regularised clean empirical risk over its minimum."""
    problem, ones = Objective(loss, 0.0, SGD["ridge"], 1.0, False), np.ones(len(X))
    start = np.zeros(X.shape[1])
    more: Any = {"jac": problem.gradient, "options": {"gtol": 1e-10}}
    best = minimize(problem.risk, start, args=(X, answers, ones), **more)
    return [float(problem.risk(theta, X, answers, ones) - best.fun) for theta in thetas]


def regression(p: int, epsilon: float, rows: int, seed: int) -> tuple[Any, ...]:
    """Return uniform features, a linear label in [-1, 1], both released, and σ."""
    rng = np.random.default_rng(2000 + seed)
    X = rng.uniform(-1, 1, size=(rows, p))
    y = np.clip(X @ np.full(p, 1.2 / np.sqrt(p)) + 0.2 * rng.normal(size=rows), -1, 1)
    sigma = classical_sigma(epsilon / 2, 1e-5, 2 * np.sqrt(p))
    noisy = X + sigma * rng.normal(size=X.shape)
    return X, y, noisy, y + classical_sigma(epsilon / 2, 1e-5, 2.0) * rng.normal(size=rows), sigma


@case(rows=2000, draws=1)
def iwp_sgd(rows: int = 1_000_000, draws: int = 5) -> Rows:
    """Does IWP-SGD undo the bias of Gaussian features and noisy labels?

    Excess risks beside plain SGD on the same release, in the setting of Dufraiche et al., Figure 1:
    one pass, batches of 128, step 1e-4, ℓ2 constant 5, ball of radius 0.5. Averaged: the average
    of the iterates in place of the last one (the paper's). Closed: least squares with σ² taken off
    the released features' second moments, scaled back to the ball. Theorem: the step of Theorem
    5.5, last and averaged. Ratios are over plain SGD on the release.
    """
    ratios = [f"{word}|.4f" for word in ("ratio", "averaged", "closed", "theorem", "its average")]
    risks = [f"{word}|.2e" for word in ("SGD, real data", "IWP-SGD", "SGD, release")]
    yield heads("loss", "p", "ε", *risks, *ratios, "s|.2f")
    settings = [(loss, p, epsilon) for p, epsilon in ((2, 2.0), (10, 5.0)) for loss in LOSSES]
    for p, epsilon in ((2, 2.0), (2, 2.5), (2, 3.0), (2, 4.0), (2, 8.0), (10, 5.0), (10, 10.0)):
        settings.append(("regression", p, epsilon))
    for loss, p, epsilon in settings:
        found = []
        for seed in range(draws):
            more: list[Any] = []
            if loss == "regression":
                X, y, noisy, z, sigma = regression(p, epsilon, rows, seed)
                # The quadratic loss of soft labels is the squared loss of the number.
                answers, judged, fit = (
                    np.stack([1 - y, 1 + y], axis=1) / 2,
                    LOSSES["quadratic"],
                    IWPRegressor,
                )
                clean, noise = {"sigma": 0.0}, {"sigma": sigma}
                moments = noisy.T @ noisy / rows + (SGD["ridge"] - sigma**2) * np.eye(p)
                theta = np.linalg.solve(moments, noisy.T @ z / rows)
                more.append(theta * min(1.0, SGD["radius"] / np.linalg.norm(theta)))
                own = SGD | {"step": "theorem", "feature_radius": math.sqrt(p)} | noise
                for average in (False, True) if p == 2 else ():
                    more.append(IWPRegressor(average=average, **own).fit(noisy, z).coef_)
            else:
                X, y = classified(rows, p, seed)
                mechanism, noisy, z = with_noise(X, y, epsilon, np.random.default_rng(1000 + seed))
                answers, judged, fit = np.eye(2)[y], LOSSES[loss], IWPClassifier
                clean, noise = ({"noise": m, "loss": judged} for m in (None, mechanism))
            thetas, seconds = [], 0.0
            for words, features, labels in ((clean, X, y), (noise, noisy, z), (clean, noisy, z)):
                model, seconds_of = timed(partial(fit(**words, **SGD).fit, features, labels))
                seconds = seconds_of if words is noise else seconds
                thetas.append(model.coef_)
            thetas.append(fit(**noise, average=True, **SGD).fit(noisy, z).coef_)
            risk = excess(judged, X, answers, [*thetas, *more])
            found.append([*risk, *[math.nan] * (7 - len(risk)), seconds])
        values = np.mean(found, axis=0)
        over = values[[1, 3, 4, 5, 6]] / values[2]
        shown = [None if math.isnan(value) else float(value) for value in over]
        yield loss, p, epsilon, *values[:3], *shown, float(np.median(values[7]))
    X, y = classified(rows, 10, 0)
    other = timed(partial(SGDClassifier(max_iter=1, tol=None, shuffle=False).fit, X, y))[1]
    own_pass = IWPClassifier(sigma=12.0, loss=LOSSES["exponential"], **SGD)
    ours = timed(partial(own_pass.fit, X, y))[1]
    told = f"{ours:.2f} s; scikit-learn's SGDClassifier, row by row and uncorrected, {other:.2f} s"
    yield f"One pass over {rows:,} × 10 rows: {told}: ratio {ours / other:.1f}."


# --- several private columns

NAMES = ("income", "marital_status")
Domains = tuple[tuple[str, ...], ...]


def two_labels(data: Path, name: str, rows: int, seed: int) -> pd.DataFrame:
    """Return rows of Adult, or made up: a state that the label depends on most."""
    if name == "Adult":
        frame = pd.read_parquet(data / "adult.parquet").sample(rows, random_state=seed)
        return frame.drop(columns=["split", "relationship", "fnlwgt"]).reset_index(drop=True)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    odds = np.exp(x[:, :1] * np.array([1, 0, -1.0]))
    odds /= odds.sum(axis=1, keepdims=True)
    state = (odds.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    chance = 1 / (1 + np.exp(-2.0 * (state - 1) - 0.7 * x[:, 1]))
    labels = {NAMES[1]: np.array(["low", "mid", "top"])[state]}
    labels |= {NAMES[0]: np.where(rng.random(rows) < chance, "yes", "no")}
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(**labels)


def released_columns(frame: pd.DataFrame, drawn: Array, domains: Domains, mechanism: Any) -> Any:
    """Return the frame with released columns and the declaration of their mechanism."""
    labels: list[dict[str, Any]] = [{"label": label} for label in NAMES]
    whole: dict[str, Any] = {"version": 2, "labels": labels}
    if mechanism.independent:
        for label, one in zip(labels, mechanism.columns, strict=True):
            label["mechanism"] = {"name": one.name, **one.declaration()}
    else:
        whole["mechanism"] = {"name": mechanism.name, **mechanism.declaration()}
    shown = {
        n: np.array(d)[drawn[:, j]] for j, (n, d) in enumerate(zip(NAMES, domains, strict=True))
    }
    out = frame.assign(**shown)
    out.attrs["ldpaudit"] = json.dumps(whole)
    return out


def codes_of(frame: pd.DataFrame, domains: Domains) -> Array:
    columns = [pd.Categorical(frame[a], d).codes for a, d in zip(NAMES, domains, strict=True)]
    return np.stack(columns, axis=1).astype(np.int32)


@case(rows=200, seeds=1, models=("logistic",), tables=("made up",), most=1)
def several_columns(
    rows: int = 10_000,
    seeds: int = 3,
    tables: tuple[str, ...] = ("made up", "Adult"),
    models: tuple[str, ...] = ("logistic", "boosting"),
    most: int = 9,
    data: Path = DATA,
) -> Rows:
    """What do learners make of several noisy columns?

    Accuracy in per cent on twice as many test rows with true values of all columns, of a model of
    the first column trained on released rows; boosting: one draw. Without the other private column,
    with it at its word, as ``ldpaudit learn`` does it, and without any noise.
    """
    ways = [f"{way}|.1f" for way in ("without", "at its word", "ldpaudit", "true labels")]
    yield heads("table", "released by", "learner", *ways)
    named: Any = models
    for name, model in product(tables, named):
        draws = range(seeds if model == "logistic" else 1)
        frames = [two_labels(data, name, 3 * rows, seed) for seed in draws]
        domains = tuple(tuple(sorted(frames[0][label].unique())) for label in NAMES)
        rr = RandomizedResponse.from_epsilon
        made: dict[str, Any] = {
            f"independent, ε 1 and {e:g}": IndependentColumns(
                (rr(domains[0], 1), rr(domains[1], e))
            )
            for e in (0.5, 1, 2)
        }
        made |= {f"joint-rr, ε {e:g}": JointRR(domains, e) for e in (1.0, 3.0)}
        made |= {f"rs-fd, ε {e:g}": RandomSampling(domains, e) for e in (1.0, 2.0)}
        for words, mechanism in list(made.items())[:most]:
            each = []
            for seed, frame in zip(draws, frames, strict=True):
                train, test = frame[:rows], frame[rows:].reset_index(drop=True)
                noise = np.random.default_rng(seed)
                drawn = mechanism.sample(codes_of(train, domains), noise)
                reading = read_file_columns(
                    released_columns(train, drawn, domains, mechanism),
                    truth=train[list(NAMES)],
                    test=test,
                    coding=DeclaredCoding,
                    marginals=marginal_claims,
                )
                file: Any = reading.file
                asked: Any = reading.tests
                alone, whole = file.alone(0), asked[0].features
                public_rows = whole.without(file.others[0])
                told = replace(alone, released=alone.truth, outputs=alone.classes)
                truth = other_columns(file, 0, asked, true=True)
                learners: Any = (
                    (alone, public_rows, Learner(model)),
                    (file.columns[0], whole, Learner(model)),
                    (alone, public_rows, Learner(model, beside=other_columns(file, 0, asked))),
                    (told, public_rows, Learner(model, true=True, beside=truth)),
                )
                answers = [
                    learner.classes(release, features, np.random.default_rng(seed)).codes
                    for release, features, learner in learners
                ]
                each.append([100 * np.mean(answer == asked[0].labels) for answer in answers])
            yield name, words, model, *np.mean(each, axis=0)


def invariant(shares: Array, rng: Rng) -> Array:
    """Post-randomize and keep the shares: diagonals from 0.8 to 1, undone, half mixed in."""
    k = len(shares)
    stay = rng.uniform(0.8, 1, k)
    first = np.zeros((k, k)) + ((1 - stay) / (k - 1))[:, None]
    np.fill_diagonal(first, stay)
    back = (first * shares[:, None]).T
    back /= back.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * first @ back + 0.5 * np.eye(k))


@case("several_columns", rows=500)
def several_columns_beside(rows: int = 10_000, data: Path = DATA) -> Rows:
    """What do other tools tell of the risk of several private columns?

    multi-freq-ldpy, where it is installed, releases income and marital status of Adult by random
    sampling plus fake data at ε = 1; the same table then goes through invariant
    post-randomization, its matrices made as the documentation of sdcMicro's ``pram`` describes.
    Both releases are audited here.
    """
    frame = two_labels(data, "Adult", rows, 0)
    domains = tuple(tuple(sorted(frame[label].unique())) for label in NAMES)
    true, rng = codes_of(frame, domains), np.random.default_rng(2)
    sizes = [len(domain) for domain in domains]
    shares = [np.bincount(true[:, j], minlength=k) / rows for j, k in enumerate(sizes)]
    channels = [Channel(invariant(s, rng), d, d) for s, d in zip(shares, domains, strict=True)]
    several = IndependentColumns(tuple(map(ExplicitChannel, channels)))
    made: dict[str, tuple[Any, Array]] = {"pram": (several, several.sample(true, rng))}
    try:
        from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client
    except ImportError:
        yield "multi-freq-ldpy is not installed."
    else:
        np.random.seed(1)  # noqa: NPY002 — the package draws from it.
        drawn = np.array([RSpFD_GRR_Client(row, sizes, 2, 1.0) for row in true])
        made["rs-fd"] = (RandomSampling(domains, 1.0), drawn)
    yield heads("release", "changed", "ε of the whole", "columns")
    for name, (mechanism, drawn) in made.items():
        release = released_columns(frame, drawn, domains, mechanism)
        only = ("mechanism", "person")
        result: Any = ldpaudit.audit(release, truth=frame[list(NAMES)], only=only, rng=1)
        parts = [result, *result.labels]
        told = [[f"{e.id} {e.value:.3g}" for e in p.estimates if "epsilon" in e.id] for p in parts]
        off = ", ".join(f"{100 * share:.2f} %" for share in (drawn != true).mean(axis=0))
        yield name, off, ", ".join(told[0]), "; ".join(map(", ".join, told[1:]))


# --- double randomized response, and generators


@case(tables=("adult",), rows=600, options=("--only", "mechanism"))
def comparison(
    tables: tuple[str, ...] = ("adult", "fertility", "diabetes130"),
    rows: int = 0,
    noise: float = 0.3,
    options: tuple[str, ...] = (),
    data: Path = DATA,
) -> Rows:
    """Does double randomized response hide more, and what does comparing cost?

    Of each table a fifth is public (a mixture generator learns from it), a fifth is kept for
    testing, and the rest is released twice at the same λ. Beside `ldpaudit compare` what two runs
    of `ldpaudit run` take, which compare nothing and train nothing.
    """
    columns = ("processor s|.0f", "wall s|.0f", "GiB|.2f", "two runs, processor s|.0f", "ratio|.2f")
    yield heads("data", *columns, "finding")
    for name in tables:
        frame, labels = (part[: rows or None] for part in public(data, name))
        values, places = np.unique(labels.astype(str), return_inverse=True)
        words = tuple(values.tolist())
        codes: Any = places.astype(np.int32)
        features = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        rng = np.random.default_rng([20260101, *name.encode()])
        order, fifth = rng.permutation(len(codes)), len(codes) // 5
        learnt, test, own = np.split(order, [fifth, 2 * fifth])
        made = generator("mixture", trained_on="public")
        made.fit(features.take(learnt), codes[learnt], len(words), rng=rng)
        asked = rng.integers(0, len(words), len(own)).astype(np.int32)
        synthetic, kept = made.sample(asked, rng), features.take(own)
        plain = RandomizedResponse(words, noise).sample(codes[own], rng)
        double: Any = DoubleRR(words, noise)
        drawn = double.sample(codes[own], asked, rng)
        both = pa.concat_tables([kept, synthetic.cast(kept.schema)])
        replaced = np.where(
            drawn.synthetic_rows >= 0, len(own) + drawn.synthetic_rows, np.arange(len(own))
        )
        with tempfile.TemporaryDirectory() as place:
            parts: dict[str, tuple[Any, Array, str]] = {
                "synthetic": (synthetic, asked, ""),
                "test": (features.take(test), codes[test], ""),
                "truth": (None, codes[own], ""),
                "rr": (kept, plain, "randomized-response"),
                "double": (both.take(replaced), drawn.labels, "double-rr"),
            }
            files = {part: Path(place, f"{part}.parquet") for part in parts}
            for part, (rows_of, drawn_codes, mechanism) in parts.items():
                claim = Declaration(mechanism, {"classes": list(words), "lambda": noise})
                written = [words[code] for code in drawn_codes]
                write(files[part], rows_of, written, claim if mechanism else None)
            beside = [f"--truth={files['truth']}", "--quiet", *options]
            more = [f"--synthetic={files['synthetic']}"]
            pages = [f"--test={files['test']}", f"--html={place}/page.html"]
            done = ran(*LDPAUDIT, "compare", files["rr"], files["double"], *beside, *more, *pages)
            runs = [ran(*LDPAUDIT, "run", files["rr"], *beside)]
            runs.append(ran(*LDPAUDIT, "run", files["double"], *beside, *more))
        used = sum(run.used for run in runs)
        finding = done.said.splitlines()[0]
        yield name, done.used, done.wall, done.peak, used, done.used / used, finding


def boosted(kinds: list[bool]) -> Any:
    return HistGradientBoostingClassifier(categorical_features=kinds, random_state=0)


@case(rows=400, names=("each column alone", "mixture"))
def synthesis(
    names: tuple[str, ...] = ("each column alone", "mixture", "gan"),
    rows: int = 0,
    data: Path = DATA,
) -> Rows:
    """How realistic are synthetic features? Beside drawing each column on its own within a class.

    Adult. Marginals: the mean distance of columns within a class, total variation of codes and
    Kolmogorov–Smirnov of numbers. AUC: of gradient boosting that tells true from synthetic rows.
    Accuracy: of boosting that learnt from synthetic rows. Images: figures 3 and 4 of TDR.
    """
    frame, income = public(data, "adult")
    y = (income == ">50K").to_numpy().astype(np.int32)
    train = (frame["split"] == "train").to_numpy()
    frame = frame.drop(columns="split")
    levels = {n: frame[n].unique().tolist() for n in frame if frame[n].dtype.kind not in "iu"}
    kinds = [name in levels for name in frame]
    true, labels = frame[train][: rows or None], y[train][: rows or None]

    def coded(part: pd.DataFrame) -> Array:
        numbers = {n: part[n].map(levels[n].index) if n in levels else part[n] for n in frame}
        return pd.DataFrame(numbers).to_numpy(float)

    x, rng = coded(true), np.random.default_rng(20260101)
    columns = ("marginals|.3f", "AUC|.3f", "accuracy|.2%")
    yield heads("generator", "seconds|.1f", "processor s|.1f", *columns)
    for name in ("the true rows", *names):
        start, worked, made = time.perf_counter(), time.process_time(), x.copy()
        if name in ("mixture", "gan"):
            features = pa.Table.from_pandas(true, preserve_index=False).replace_schema_metadata(
                None
            )
            fitted = generator(name, trained_on="public").fit(features, labels, 2, rng=rng)
            made = coded(fitted.sample(labels, rng).to_pandas())
        elif name != "the true rows":
            for label, j in product((0, 1), range(x.shape[1])):
                some = np.flatnonzero(labels == label)
                made[some, j] = x[rng.choice(some, len(some)), j]
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        far = [
            distance(x[labels == label, j], made[labels == label, j], kind)
            for label in (0, 1)
            for j, kind in enumerate(kinds)
        ]
        both, is_true = np.concatenate([x, made]), np.arange(2 * len(x)) < len(x)
        fit, test = np.split(rng.permutation(len(both)), 2)
        told = boosted(kinds).fit(both[fit], is_true[fit]).predict_proba(both[test])[:, 1]
        accuracy = boosted(kinds).fit(made, labels).score(coded(frame[~train]), y[~train])
        area = roc_auc_score(is_true[test], told)
        yield name, seconds, worked, float(np.mean(far)), float(area), float(accuracy)


def distance(a: Array, b: Array, kind: bool) -> float:
    """Return the total variation of codes, or the Kolmogorov–Smirnov distance of numbers."""
    if not kind:
        return float(ks_2samp(a, b, method="asymp").statistic)
    size = int(max(a.max(), b.max())) + 1
    shares = [np.bincount(v.astype(int), minlength=size) / len(v) for v in (a, b)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def population(name: str, data: Path) -> FeatureTable:
    """Return rows to draw from: made up, Adult without the sampling weight, or MNIST 0 and 9."""
    rng = np.random.default_rng(0)
    if name == "numbers":
        centres = 2 * rng.standard_normal((3, 8))
        return table_of(centres[rng.integers(0, 3, 40_000)] + rng.standard_normal((40_000, 8)))
    if name == "ties":
        return table_of(rng.binomial((4, 6, 9), (0.3, 0.5, 0.4), (40_000, 3)))
    if name == "images":
        return table_of(zero_or_nine(data, "train")[0])
    frame = public(data, "adult")[0].drop(columns=["split", "fnlwgt"])
    return table_of(*numbers_and_codes(frame))


@case("synthesis", runs=1, rows=100, populations=("ties",))
def memorisation(
    runs: int = 200,
    rows: int = 1000,
    populations: tuple[str, ...] = ("numbers", "ties", "mixed", "images"),
    data: Path = DATA,
) -> Rows:
    """Is a generator found that copies its training rows, and one accused that saw none?

    In every run as many training and held-out rows are drawn from one population, and as many
    synthetic rows: other rows, a share of them replaced by copies of training rows, also with noise
    of a tenth of a standard deviation. Beside the test of pairs stand two that a user would pick
    instead: the same pairs without the most one-sided ones on their own, and every synthetic row as
    a coin of its own (is its closest record a training one?), all at 5 %.
    """
    many = "saw nothing, 20 rows in many copies"
    made = [("saw nothing", 0.0, 0.0), (many, 0.0, 0.0)]
    for noise, share in product((0.0, 0.1), (0.01, 0.05, 0.2, 1.0)):
        made.append((f"{share:.0%} copies{' with noise' * bool(noise)}", share, noise))
    limit = binom.isf(1e-6, runs, 0.05)
    yield f"Accusations in {runs} runs (at most {limit:.0f} of who saw nothing)."
    yield heads("population", "generator", "accused", "all pairs alone", "row by row")
    for name in populations:
        whole = population(name, data)
        total = np.zeros((len(made), 3), dtype=int)
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            drawn = rng.permutation(len(whole))[: 3 * rows].reshape(3, rows)
            training, held_out, other = (whole.take(part) for part in drawn)
            metric = fit_metric(joined(training, held_out), "l2", rng=rng)
            sets = metric.transform(training), metric.transform(held_out)
            for place, (words, share, noise) in enumerate(made):
                copies = training.take(rng.integers(0, rows, int(share * rows)))
                scale = noise * training.numeric.std(axis=0)
                moved = copies.numeric + scale * rng.standard_normal(copies.numeric.shape)
                own = replace(copies, numeric=moved.astype(np.float32))
                fake = joined(own, other.take(np.arange(len(own), rows)))
                if words == many:
                    fake = other.take(np.repeat(np.arange(20), rows // 20))
                counts = count_memorisation(*sets, metric.transform(fake), rng)
                alone = binom.sf(counts.wins - 1, counts.decisive, 0.5) < 0.05
                by_rows = binom.sf(counts.nearest_training - 1, counts.synthetic, 0.5) < 0.05
                total[place] += [counts.share_lower(0.05) > 0.5, alone, by_rows]
        for (words, _, _), found in zip(made, total, strict=True):
            yield name, words, *found


# --- the optimal unbiased randomizer


def price_like() -> Array:
    """Return a prior of 401 labels like clipped prices: log-normal."""
    labels = np.arange(401.0)
    prior = np.exp(-0.5 * (np.log(labels + 1) - 3.5) ** 2) / (labels + 1)
    return np.asarray(prior / prior.sum())


def mesh_program(labels: Array, prior: Array, epsilon: float, mesh: Array, form: str) -> float:
    """Return the loss of a linear program over a mesh of outputs.

    "printed" is Algorithm 1 of Badanidiyuru et al. (2023), M[y', i] ≤ e^ε M[y, i] for all ordered
    pairs of labels; "two-sided" the same program as lowest[i] ≤ M[y, i] ≤ e^ε lowest[i].
    """
    k, n, growth = len(labels), len(mesh), math.exp(epsilon)
    own, extra = sp.identity(k * n), n if form == "two-sided" else 0
    if extra:
        lowest = sp.vstack([sp.identity(n)] * k)
        rows = sp.vstack([sp.hstack([own, -growth * lowest]), sp.hstack([-own, lowest])])
    else:
        pairs = [(a, b) for a in range(k) for b in range(k) if a != b]
        places = (np.repeat(np.arange(len(pairs)), 2), np.array(pairs).ravel())
        select = sp.csr_array((np.tile([1.0, -growth], len(pairs)), places), shape=(len(pairs), k))
        rows = sp.kron(select, sp.identity(n))
    losses, scale = prior[:, None] * 0.5 * (mesh - labels[:, None]) ** 2, np.abs(mesh).max()
    equal = sp.vstack([sp.kron(sp.identity(k), r[None, :]) for r in (np.ones(n), mesh / scale)])
    found = linprog(  # type: ignore[call-overload]
        np.concatenate([losses.ravel(), np.zeros(extra)]),
        A_ub=sp.csr_array(rows),
        b_ub=np.zeros(rows.shape[0]),
        A_eq=sp.csr_array(sp.hstack([equal, sp.csr_array((2 * k, extra))])),
        b_eq=np.concatenate([np.ones(k), labels / scale]),
        method="highs",
    )
    return float(found.fun)


@case("optimal_unbiased", meshes=6, labels=(6,), repeats=1, epsilons=(1.0,), limit=60.0)
def unbiased(
    labels: tuple[int, ...] = (52, 401),
    epsilons: tuple[float, ...] = (0.1, 0.3, 0.5, 0.69, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
    meshes: int = 416,
    repeats: int = 3,
    limit: float = 600.0,
) -> Rows:
    """How good is the optimal unbiased randomizer, and how fast beside mesh linear programs?

    Synthetic priors like weeks worked (52 labels) and clipped prices (401). Processor seconds of
    one thread, the least of the repeats; a linear program runs once, in a process that is ended at
    the limit of seconds.
    """
    columns = ("outputs", "closed form|.9g", "bias|.0e")
    yield heads("k", "ε", "method", "ms|.1f", "loss|.9g", "gap/loss|.1e", *columns)
    designs: dict[tuple[int, float], tuple[Any, float]] = {}
    for k, epsilon in product(labels, epsilons):
        values, prior = np.arange(1.0, k + 1), problem(k)
        work = partial(optimal_unbiased, tuple(values.tolist()), prior, epsilon)
        design, seconds = designs[k, epsilon] = timed(work, repeats)
        closed, mechanism = closed_form(values, prior, math.expm1(epsilon))[1], design.mechanism
        bias, outputs = np.abs(mechanism.bias()).max(), len(mechanism.channel.outputs)
        gap = design.gap / design.loss
        yield k, epsilon, design.method, 1e3 * seconds, design.loss, gap, outputs, closed, bias
    yield "Mesh linear programs, side by side"
    yield heads(
        "k", "ε", "outputs", "form", "LP, s|.2f", "LP loss|.9g", "above, %|.2g", "time ratio|.0f"
    )
    for k, n, form in ((labels[0], labels[0], "printed"), (labels[0], meshes, "two-sided")):
        values, prior = np.arange(1.0, k + 1), problem(k)
        for epsilon in [e for e in (1.0, 4.0) if e in epsilons]:
            design, own = designs[k, epsilon]
            ends = debiased_outputs(values, math.expm1(epsilon))
            mesh = np.linspace(ends[0], ends[-1], n)
            with multiprocessing.get_context("fork").Pool(1) as pool:
                given = (partial(mesh_program, values, prior, epsilon, mesh, form),)
                try:
                    loss, seconds = pool.apply_async(timed, given).get(limit)
                except multiprocessing.TimeoutError:
                    yield k, epsilon, n, form, f"> {limit:g}", None, None, None
                    continue
            yield k, epsilon, n, form, seconds, loss, 100 * (loss / design.loss - 1), seconds / own


def problem(k: int) -> Array:
    """Return a prior of so many labels."""
    prior = weeks_like() if k == 52 else price_like()[:k]
    return np.asarray(prior / prior.sum())
