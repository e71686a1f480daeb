"""Whether verdicts are right: honest, changed, leaking and faulty releases over many draws."""

import importlib
import json
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import ldpaudit
from benchmarks.runner import DATA, TESTS, Array, Rng, Rows, case, heads
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.extras.selftest.planting import keep_chance, people, replaced


def of_tests(name: str) -> Any:
    """Return a module that the tests share."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    return importlib.import_module(name)


def share(count: int, n: int) -> str:
    """Return a count with its Clopper–Pearson interval at 95 %."""
    low, high = clopper_pearson(count, n, 0.05)
    return f"{count} of {n} ({100 * float(low):.1f} to {100 * float(high):.1f} %)"


@case(seeds=1, size=(300,), faults=("copy",), only=("mechanism",), truth="with")
def zoo(
    seeds: int = 6,
    first_seed: int = 0,
    size: tuple[int, ...] = (10_000,),
    faults: tuple[str, ...] = (),
    skip: tuple[str, ...] = ("renyi", "instance-loss", "label-inference", "numeric-inference"),
    only: tuple[str, ...] = (),
    truth: str = "both",
    verbose: bool = False,
) -> Rows:
    """Which faults of a release are found, and is anybody accused who is honest?

    For each fault and number of rows, with the true labels and from the release alone, how many
    draws were found, in how many of them by exit status 1, and how many may be published. For
    honest releases only exit status 1 counts: a false alarm. Skipped are audits that judge no
    claim. ``--verbose`` tells on the standard error output what each result said.
    """
    warnings.simplefilter("ignore")
    catalogue, audited = of_tests("zoo.catalogue").FAULTS, of_tests("zoo.audited").audit
    sides = {"with": [True], "without": [False], "both": [True, False]}[truth]
    shown = ["with truth" if side else "release alone" for side in sides]
    yield heads("fault", "ε", "rows", *shown, "seconds|.1f")
    for name, n in product(faults or catalogue, size):
        fault, cells, start = catalogue[name], [], time.perf_counter()
        for side in sides:
            results, broken = [], 0
            for seed in range(first_seed, first_seed + seeds):
                try:
                    results.append(
                        audited(fault, n, seed, side, skip=(*skip, "synthetic"), only=only)
                    )
                except Exception as error:  # A release that breaks an audit is a finding, too.
                    broken += 1
                    print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            if verbose:
                print(name, *results, sep="\n    ", file=sys.stderr)
            accused = sum(one.accused for one in results)
            words = f"{sum(one.decision == 'publish' for one in results)} publish"
            if fault.honest:
                passed = sum(one.verdict == "pass" for one in results)
                cell = f"{accused} of {seeds} accused ({passed} exit 0, {words})"
            else:
                found = sum(one.found for one in results)
                cell = f"{found} of {seeds} ({accused} exit 1, {words})"
                trace = fault.insider if side else fault.outsider
                cell += " – cannot" * bool(trace.why_not)
            cells.append(cell + f", {broken} without a result" * bool(broken))
        spent = (time.perf_counter() - start) / seeds / len(sides)
        epsilon = "honest" if fault.honest else f"{fault.epsilon:.3g}".replace("inf", "∞")
        yield fault.id, epsilon, f"{n}", *cells, spent


# --- decisions: releases of public tables and of made-up people

LABELS = ["adult.income", "adult.sex", "adult.relationship", "adult.marital_status"]
LABELS += ["diabetes130.readmitted", "diabetes130.gender", "fertility.morekids", "skin.label"]
LABELS += ["made up."]
NUMBERS = ("adult.hours_per_week", "diabetes130.time_in_hospital", "fertility.work", "made up.")
NUMERIC = ["laplace", "discrete-laplace", "exponential", "staircase", "discrete-staircase"]
NUMERIC += ["debiased-rr", "optimal-unbiased", "rr-on-bins"]
TOP = 13
CHANGED = ("rules", "balanced", "thinned", "doubled", "imputed", "moving averages", "selected")
CLEAR = {"9 in the clear, ε = 0.1": (9, 0.1), "8 in the clear, ε = 1": (8, 1.0)}
Planted = tuple[pd.DataFrame, Array, dict[str, Any]]
read = cache(pd.read_parquet)


def persons(
    data: Path, rng: Rng, numeric: bool = False, least: float = 0.0
) -> tuple[pd.DataFrame, Array]:
    """Draw features and true labels as codes; each class has at least a share of the rows."""
    n = int(rng.integers(1500, 4000) if rng.random() < 0.9 else rng.choice([8000, 13_500]))
    name, label = str(rng.choice(NUMBERS if numeric else LABELS)).split(".")
    if not label:
        made = people(n, TOP + 1 if numeric else int(rng.choice([2, 3, 5])), rng)
        frame, codes = made.frame, made.codes.astype(np.int64)
    else:
        rows = read(data / f"{name}.parquet").sample(n, random_state=int(rng.integers(2**31)))
        rows = rows.sort_index() if rng.random() < 0.5 else rows
        codes = pd.factorize(rows[label], sort=True)[0]
        step = {"hours_per_week": 8, "work": 4}.get(label, 1)
        codes = np.minimum(rows[label].to_numpy() // step, TOP) if numeric else codes
        frame = rows.drop(columns=label).reset_index(drop=True)
    if np.bincount(codes).min() < least * n:
        return persons(data, rng, numeric, least)
    some = np.sort(rng.permutation(frame.shape[1])[: int(rng.integers(3, 9))])
    return frame.iloc[:, some].rename(columns={"label": "a label"}), codes


def response(codes: Array, k: int, epsilon: float, rng: Rng) -> Array:
    """Return the codes after randomized response."""
    return replaced(codes, k, rng.random(len(codes)) < keep_chance(epsilon, k), rng)


def claimed(k: int, epsilon: float) -> dict[str, Any]:
    """Return what the audit is told: randomized response."""
    return {"mechanism": {"name": "rr", "epsilon": epsilon, "classes": list(range(k))}}


def plain(data: Path, rng: Rng) -> Planted:
    """Release labels by some mechanism, as it claims."""
    name = str(rng.choice(["rr"] * 6 + ["rr-top-k", *NUMERIC]))
    epsilon = float(rng.choice([0.5, 1, 1.5, 2, 3]))
    frame, codes = persons(data, rng, name in NUMERIC)
    if name == "rr":
        k = int(codes.max()) + 1
        released = frame.assign(label=response(codes, k, epsilon, rng))
        return released, codes, claimed(k, epsilon)
    given: dict[str, Any] = {"labels": f"0:{TOP}:1"} if name in NUMERIC else {}
    given |= {"private_prior": epsilon / 3} if name in ("rr-top-k", "rr-on-bins") else {}
    table = frame.assign(label=codes)
    return ldpaudit.privatize(table, name, epsilon=epsilon, **given), codes, {}


def changed(kind: str, data: Path, rng: Rng) -> Planted:
    """Release labels by randomized response, and use or change the released labels afterwards."""
    (frame, codes), epsilon = persons(data, rng, least=0.03), float(rng.choice([0.5, 1, 2]))
    n, k = len(codes), int(codes.max()) + 1
    if kind == "moving averages":  # The true label is mostly that of the row before.
        new = np.where(rng.random(n) < rng.choice([0.05, 0.1, 0.3]), np.arange(n), 0)
        codes = codes[np.maximum.accumulate(new)]
    released = response(codes, k, epsilon, rng)
    counts, every, series = np.bincount(released, minlength=k), np.arange(n), pd.Series(released)
    ranks = frame.sample(frac=1, axis=1, random_state=int(rng.integers(2**31)))
    groups = (ranks.rank(pct=True, method="min") > 1 - rng.uniform(0.03, 0.3)).to_numpy()
    group = groups[:, groups.any(axis=0).argmax()]
    if kind == "rules":
        released = np.where(group, int(rng.integers(k)), released)
    elif kind == "imputed":
        amount, missing = rng.lognormal(8, 1, n) * (1 + codes / 2), rng.random(n) < 0.1
        means = pd.Series(np.where(missing, np.nan, amount)).groupby(released).transform("mean")
        frame["amount"] = np.where(missing, means, amount).round(2)
    elif kind == "moving averages":
        frame["mean"] = series.rolling(int(rng.choice([3, 7, 14]))).mean()
    chances: dict[str, Any] = {
        "balanced": lambda: series.groupby(released).cumcount() < counts.min(),
        "thinned": lambda: np.where(released == counts.argmax(), rng.choice([0.1, 0.3, 0.6]), 1.0),
        "selected": lambda: np.where(
            group | (rng.random() < 0.5), rng.uniform(0.3, 1, k)[released], 1.0
        ),
    }
    chance = chances[kind]() if kind in chances else 1.0
    rows = np.flatnonzero(rng.random(n) < chance)
    if kind == "doubled":
        rows = rng.permutation(np.append(every, np.flatnonzero(released == counts.argmin())))
    table = frame.assign(label=released).iloc[rows].reset_index(drop=True)
    return table, codes[rows], claimed(k, epsilon)


def rare(kind: str, data: Path, rng: Rng) -> Planted:
    """Release labels of which the last is rare, in the clear where the kind says so."""
    (frame, codes), clear = persons(data, rng, least=0.03), CLEAR.get(kind)
    few, epsilon = clear or (int(rng.integers(1, 51)), float(rng.choice([0.1, 0.5, 1, 2])))
    codes = np.minimum(codes, 1) if clear else codes
    k, who = int(codes.max()) + 2, rng.permutation(len(codes))[:few]
    codes[who] = k - 1
    released = response(codes, k, epsilon, rng)
    released[who] = codes[who] if clear else released[who]
    return frame.assign(label=released), codes, claimed(k, epsilon)


@case(draws=1, kinds=("rules",))
def decisions(
    draws: int = 50,
    kinds: tuple[str, ...] = ("plain", *CHANGED, "a rare class", *CLEAR),
    out: str = "",
    data: Path = DATA,
) -> Rows:
    """How often do honest, changed and leaking releases of public tables get exit 1?

    Each is audited with its true labels. ``--out``: a file that gets a line of JSON for each draw,
    with the reason. Faults are drawn by the case zoo.
    """
    warnings.simplefilter("ignore")
    yield heads("release", "draws", "exit 0", "exit 1 (95 % interval)", "exit 3", "publish")
    for kind in kinds:
        ended = Counter[str]()
        for draw in range(draws):
            rng = np.random.default_rng([draw, *kind.encode()])
            if kind in ("plain", *CHANGED):
                made = plain(data, rng) if kind == "plain" else changed(kind, data, rng)
            else:
                made = rare(kind, data, rng)
            table, truth, claim = made
            only = ("assumptions", "mechanism", "power")
            result = ldpaudit.audit(table, truth, label="label", only=only, rng=draw, **claim)
            ended.update([result.verdict, result.decision])
            if out:
                failed = [check.id for check in result.checks if check.verdict == "fail"]
                line = {"kind": kind, "draw": draw, "failed": failed, "said": result.sentence}
                with Path(out).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({**line, "verdict": result.verdict}) + "\n")
        numbers = (share(ended["fail"], draws), ended["inconclusive"], ended["publish"])
        yield kind, draws, ended["pass"], *numbers


MODELS: dict[str, Any] = {
    "forest": lambda seed: RandomForestClassifier(30, random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "logistic regression": lambda _: LogisticRegression(),
}


@case(rows=200, leaking=1, honest=0, names=("forest",))
def models(
    rows: int = 10_000,
    leaking: int = 100,
    honest: int = 200,
    predictions: bool = False,
    names: tuple[str, ...] = tuple(MODELS),
) -> Rows:
    """How often is honest training accused, and leaking training found?

    Half of the labels are drawn by coin; for logistic regression one person's, in each of 30 runs.
    The claim is the ε of the noise, or 1 where labels are used as they are. With ``--predictions``
    those of the model for its training rows are audited instead: half of the labels are canaries,
    drawn by the chance that features give.
    """
    columns = ("audits", "fail", "pass", "inconclusive", "mean bound on ε|.2f")
    yield heads("labels", "model", *columns, "added by the predictions, points|.1f")
    each = -(-honest // (3 * len(names)))
    for epsilon, name in product((None, 1.0, 2.0, 4.0), names):
        draws = leaking if epsilon is None else each
        ended, bounds, gains = Counter[str](), [], []
        for draw in range(draws):
            rng = np.random.default_rng([draw, int(10 * (epsilon or 0))])
            features = rng.normal(size=(rows, 6))
            chance = expit(features[:, 0] + features[:, 1])
            truth = (rng.random(rows) < chance).astype(int)

            def fit(table: Any, labels: Any, made: Any = (name, epsilon, rng, draw)) -> Any:
                model, noise, rng, seed = made
                kept = noise is None or rng.random(len(labels)) < expit(noise)
                return MODELS[model](seed).fit(table, np.where(kept, labels, 1 - labels))

            if predictions:
                model = fit(features, truth)
                canaries = np.c_[1 - chance, chance]
                canaries[rows // 2 :] = np.nan
                train = pd.DataFrame(features, columns=list("abcdef")).assign(label=truth)
                found: Any = ldpaudit.audit_predictions(
                    *(model.predict_proba(features), train),
                    epsilon=epsilon or 1.0,
                    canaries=canaries,
                    threads=1,
                    seed=draw,
                )
                bounds.append(found["predictions.epsilon_lower"].value)
                gains.append(100 * found["predictions.gain"].value)
            else:
                one = name == "logistic regression"
                found = ldpaudit.audit_model(
                    *(fit, features, truth, epsilon or 1.0),
                    runs=30 if one else 1,
                    one_person=one,
                    seed=draw,
                )
                bounds.append(found["model.epsilon"].value)
            ended[found.verdict] += 1
        if draws:
            labels = "as they are, claim ε = 1" if epsilon is None else f"noisy, ε = {epsilon:g}"
            counts = [ended[verdict] for verdict in ("fail", "pass", "inconclusive")]
            gain = float(np.mean(gains)) if gains else None
            yield labels, name, draws, *counts, float(np.mean(bounds)), gain


@case("robustness", each=1, commands=("describe",))
def signals(each: int = 100, slow: int = 20, seed: int = 1, commands: tuple[str, ...] = ()) -> Rows:
    """What do commands leave behind when they are ended by signals at random moments?

    Each command is sent SIGKILL, SIGTERM, SIGINT, SIGINT twice and SIGHUP in turn, at a moment
    drawn uniformly over its usual duration; in every second run its outputs are there already.
    After SIGKILL the command runs once more, which must remove what was left.
    """
    listed, killing = of_tests("killing.commands"), of_tests("killing.running")
    turns = dict.fromkeys(listed.COMMANDS, each) | dict.fromkeys(listed.SLOW, slow)
    columns = ("signals", "ended before the end", "left after a kill, then removed", "faults")
    yield heads("command", *columns)
    total = np.zeros(4, dtype=int)
    with tempfile.TemporaryDirectory() as name:
        inputs, folder = Path(name, "inputs"), Path(name)
        inputs.mkdir()
        listed.write_inputs(inputs)
        for command, number in turns.items():
            if commands and command.name not in commands:
                continue
            rng, counted = random.Random(f"{seed} {command.name}"), np.zeros(4, dtype=int)
            usual = killing.import_everything([command], inputs, folder / "usual")[command.name]
            ready = folder / "usual" / "second-0" / "out" if command.replaces else None
            for turn in range(number):
                signal = killing.SIGNALS[turn % len(killing.SIGNALS)]
                over = ready if turn // len(killing.SIGNALS) % 2 else None
                place = folder / f"turn-{turn}"
                found, wrong = killing.one_case(command, inputs, place, usual, signal, rng, over)
                counted += [1, found.status not in (0, 1, 3), found.left, bool(wrong)]
                for fault in wrong:
                    print(f"FAULT {command.name}, {turn}, {signal[0]}: {fault}", file=sys.stderr)
                shutil.rmtree(place)
            shutil.rmtree(folder / "usual")
            total += counted
            yield command.name, *counted
    yield "**all**", *total
