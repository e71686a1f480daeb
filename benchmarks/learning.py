"""What becomes of learners, generators and designs, beside what a user would take instead."""

import json
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import ldpaudit
from benchmarks.planted import public
from benchmarks.runner import DATA, Array, Rng, Rows, case, heads
from ldpaudit.extras.choose.sweep.points import read_tables, reading_of, score, simulate
from ldpaudit.extras.choose.sweep.request import Grid, SweepRequest
from ldpaudit.extras.learn.utility.companions import other_columns
from ldpaudit.extras.learn.utility.learner import Learner
from ldpaudit.extras.several.joint import JointRR, RandomSampling
from ldpaudit.extras.several.reading import read_file_columns
from ldpaudit.mechanisms import Channel, ExplicitChannel, RandomizedResponse
from ldpaudit.mechanisms.joint import IndependentColumns, marginal_claims
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.synthesis import generator
from ldpaudit.work.progress import NoProgress

# --- several private columns

NAMES = ("income", "marital_status")
Domains = tuple[tuple[str, ...], ...]


def two_labels(data: Path, rows: int, seed: int) -> pd.DataFrame:
    frame = pd.read_parquet(data / "adult.parquet").sample(rows, random_state=seed)
    return frame.drop(columns=["split", "relationship", "fnlwgt"]).reset_index(drop=True)


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


@case(rows=200, seeds=1, models=("logistic",), most=1)
def several_columns(
    rows: int = 10_000,
    seeds: int = 3,
    models: tuple[str, ...] = ("logistic", "boosting"),
    most: int = 9,
    data: Path = DATA,
) -> Rows:
    """What do learners make of several noisy columns?

    Accuracy in per cent on twice as many test rows of Adult with true values of all columns, of a
    model of the first column trained on released rows; boosting: one draw. Without the other
    private column, with it at its word, as ``ldpaudit learn`` does it, and without any noise.
    """
    ways = [f"{way}|.1f" for way in ("without", "at its word", "ldpaudit", "true labels")]
    yield heads("released by", "learner", *ways)
    named: Any = models
    for model in named:
        draws = range(seeds if model == "logistic" else 1)
        frames = [two_labels(data, 3 * rows, seed) for seed in draws]
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
            yield words, model, *np.mean(each, axis=0)


def invariant(shares: Array, rng: Rng) -> Array:
    """Post-randomize and keep the shares: diagonals from 0.8 to 1, undone, half mixed in."""
    k = len(shares)
    stay = rng.uniform(0.8, 1, k)
    first = np.zeros((k, k)) + ((1 - stay) / (k - 1))[:, None]
    np.fill_diagonal(first, stay)
    back = (first * shares[:, None]).T
    back /= back.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * first @ back + 0.5 * np.eye(k))


@case("several_columns", rows=200)
def several_columns_beside(rows: int = 10_000, data: Path = DATA) -> Rows:
    """What do other tools tell of the risk of several private columns?

    multi-freq-ldpy, where it is installed, releases income and marital status of Adult by random
    sampling plus fake data at ε = 1; the same table then goes through invariant
    post-randomization, its matrices made as the documentation of sdcMicro's ``pram`` describes.
    Both releases are audited here.
    """
    frame = two_labels(data, rows, 0)
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


@case(draws=2, rows=400, names=("Adult, few positive",), kinds=("linear",))
def unbiased_draws(
    draws: int = 10,
    rows: int = 3_900,
    noise: float = 0.8,
    names: tuple[str, ...] = ("Adult, few positive", "two clusters", "MNIST 0 against 9"),
    kinds: tuple[str, ...] = ("linear", "network"),
    data: Path = DATA,
) -> Rows:
    """Does learning from double randomized response at a flip of 0.4 collapse in some draws?

    Each draw is another release, as ``sweep`` makes it, with synthetic rows of a mixture of public
    rows; the model is that of ``sweep``, scored on other rows.
    """
    yield heads("data", "learner", "draws", "least|.1%", "mean|.1%", "most|.1%", "constant|.1%")
    for name in names:
        with TemporaryDirectory() as folder:
            parts = {part: Path(folder) / f"{part}.parquet" for part in ("own", "public", "test")}
            table = _two_classes(name, 3 * rows, data)
            for place, path in enumerate(parts.values()):
                table.iloc[place * rows : (place + 1) * rows].to_parquet(path, index=False)
            for kind in kinds:
                if (name, kind) == ("MNIST 0 against 9", "linear"):
                    continue
                request = SweepRequest(
                    data=str(parts["own"]),
                    label="label",
                    mechanisms=("double-rr",),
                    grid=Grid("lambda", (noise,)),
                    learner="network" if kind == "network" else "linear",
                    generator="mixture",
                    generator_data=str(parts["public"]),
                    test=str(parts["test"]),
                    repeats=draws,
                )
                tables = read_tables(request)
                tables = tables.with_generator(request.points()[0], NoProgress())
                found = []
                for point in request.points():
                    drawn = simulate(tables, point)
                    found.append(score(tables, reading_of(tables, drawn), 0.95, drawn.seed))
                right = [one.estimate.value for one in found]
                least, most, mean = min(right), max(right), float(np.mean(right))
                yield name, kind, draws, least, mean, most, found[0].constant


def _two_classes(name: str, rows: int, data: Path) -> pd.DataFrame:
    """Return a table of two classes in random order, with its label last."""
    rng = np.random.default_rng(0)
    if name == "two clusters":
        truth = rng.random(rows) < 0.5
        table = pd.DataFrame(rng.normal(size=(rows, 16)) + 0.8 * truth[:, None])
        table.columns = [f"x{column}" for column in range(16)]
        return table.assign(label=np.where(truth, "yes", "no"))
    if name == "MNIST 0 against 9":
        with np.load(data / "mnist.npz") as held:
            images, digits = held["x_train"], held["y_train"]
        kept = rng.permutation(np.flatnonzero((digits == 0) | (digits == 9)))[:rows]
        pixels = images[kept].reshape(len(kept), -1).astype(np.float32).tolist()
        return pd.DataFrame({"pixels": pixels, "label": digits[kept].astype(str)})
    table = pd.read_parquet(data / "adult.parquet").drop(columns="split")
    return table.sample(rows, random_state=0).rename(columns={"income": "label"})
