"""What other tools make of the same releases: attacks, reports, audits of randomizers."""

import importlib
import json
import math
import re
import shutil
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.peers import ATTACKS, FEATURES, REPORTS
from benchmarks.planted import declaration, released, table_of, write
from benchmarks.runner import DATA, LDPAUDIT, ROOT, TESTS, Array, Rng, Rows, case, heads, ran
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.extras.probe.black_box.request import BlackBoxRequest, Claim
from ldpaudit.extras.probe.black_box.work import audit_black_box
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Release


def theirs(python: str, *words: object, limit: float = 3600.0) -> Any:
    """Return what peers.py says in another environment; a text where it says nothing."""
    if not python:
        return "not asked"
    done = ran(python, ROOT / "benchmarks" / "peers.py", *words, limit=limit)
    if done.status:
        return f"not measured: {done.said.splitlines()[-1][:80] if done.said else f'> {limit:g} s'}"
    return json.loads(done.said.splitlines()[-1])


def two_classes(folder: Path, rows: int, epsilon: float) -> tuple[Release, Any]:
    """Write the same release for all: four Gaussian features, classes 0.7 apart in each."""
    features, noise = (np.random.default_rng([7, part]) for part in (0, 1))
    truth = (features.random(rows) < 0.5).astype(np.int32)
    values = features.normal(size=(rows, 4)) + 0.35 * (2 * truth[:, None] - 1)
    mechanism = RandomizedResponse.from_epsilon((0, 1), epsilon)
    release = released(table_of(values), truth, mechanism, noise)
    frame, labels = pd.DataFrame(values, columns=FEATURES), np.asarray(release.released)
    frame.assign(label=truth).to_csv(folder / "original.csv", index=False)
    frame.assign(label=labels).to_csv(folder / "released.csv", index=False)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    write(folder / "released.parquet", table, labels, declaration((0, 1), epsilon))
    write(folder / "truth.parquet", None, truth)
    return release, mechanism


@case(rows=200)
def attack_speed(
    rows: int = 100_000,
    attacked: int = 1_000,
    epsilon: float = 2.0,
    limit: float = 300.0,
    peers: str = "",
) -> Rows:
    """How fast are attacks beside Anonymeter and SDMetrics?

    ldpaudit runs as its command: start, reading, all attacks of the default audit on every row,
    their intervals and the page. The peers are given data in memory, and only their attack is
    timed: of some rows (SDMetrics' slow ones of a fiftieth) and of three times as many, given the
    whole release; what each further row took gives their seconds for all.
    """
    columns = ("accuracy|.3f", "seconds|.1f", "processor s|.1f", "processor s for all|.0f")
    yield heads("", "rows attacked", *columns, "times|.1f")
    with tempfile.TemporaryDirectory() as place:
        two_classes(Path(place), rows, epsilon)
        words = ["--only", "label-inference", "--quiet", "--html", f"{place}/r.html"]
        words += [f"{place}/released.parquet", "--truth", f"{place}/truth.parquet"]
        done = ran(*LDPAUDIT, "run", *words, "--json", f"{place}/r.json")
        estimates = json.loads(Path(f"{place}/r.json").read_text())["estimates"]
        best = next(e["value"] for e in estimates if e["id"] == "attack.best.accuracy")
        yield "`ldpaudit run`, default attacks", rows, best, done.wall, done.used, done.used, 1.0
        for words_of, name in ATTACKS.items():
            slow = name in ("CategoricalKNN", "DisclosureProtection")
            few = attacked // 50 if slow else attacked
            first = theirs(peers, "attack", name, place, few, limit=limit)
            second = first
            if isinstance(first, list):
                second = theirs(peers, "attack", name, place, 3 * few, limit=limit)
            if isinstance(second, str):
                yield words_of, 3 * few, second, None, None, None, None
                continue
            every = second[2] + (second[2] - first[2]) / (2 * few) * (rows - 3 * few)
            yield words_of, 3 * few, *second, every, every / done.used


# What Chromium asks for by itself, with whatever page.
OWN = re.compile(r"(clients2|accounts|www)\.google\.com|android\.clients|gvt1|googleapis\.com")


def opened(page: str) -> tuple[int, float]:
    """Return how many addresses Chromium asked for, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"]
        words += ["--disable-background-networking", "--disable-component-update"]
        words += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}/profile"]
        program = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
        runs = [ran(program, *words, f"--log-net-log={folder}/log", page) for _ in range(3)]
        asked = set(re.findall(r'"url":"(https?://[^"]+)"', Path(f"{folder}/log").read_text()))
    others = [url for url in asked if not OWN.search(urlsplit(url).hostname or "")]
    return len(others), min(run.wall for run in runs)


@case(rows=300, options=("--only", "mechanism"))
def reports(
    rows: int = 0, options: tuple[str, ...] = (), peers: str = "", data: Path = DATA
) -> Rows:
    """How large is the page of an audit, what does it load, and how soon is it drawn?

    Beside evidently, ydata-profiling and sdmetrics, in the environment of the Python ``--peers``.
    Chromium, with ``--peers``, has no network; its time is the least of three, less that of an
    empty page.
    """
    columns = ("kB|.0f", "scripts", "asked for by Chromium", "Chromium, s|.1f")
    yield heads("report", *columns, "to make, processor s|.0f")
    empty = opened("about:blank")[1] if peers else 0.0
    with tempfile.TemporaryDirectory() as place:
        original, release = f"{place}/original.parquet", f"{place}/released.parquet"
        adult = pd.read_parquet(data / "adult.parquet").drop(columns="split")[: rows or None]
        adult.to_parquet(original, index=False)
        claim = ["--label", "income", "--mechanism", "rr", "--epsilon", "1"]
        ran(*LDPAUDIT, "privatize", original, "-o", release, *claim)
        page = f"{place}/ldpaudit run.html"
        done = ran(*LDPAUDIT, "run", release, "--truth", original, "--html", page, *options)
        made: list[tuple[str, Any]] = [("ldpaudit run", ["", done.used])]
        for name in REPORTS:
            told = theirs(peers, "report", name, place, f"{place}/{name}.html")
            made.append((name, told))
        for name, told in made:
            if isinstance(told, str):
                yield name, told, None, None, None, None
                continue
            file = Path(place, f"{name}.html")
            text, asked, took = file.read_text(), None, None
            if peers:
                asked, seconds = opened(file.as_uri())
                took = seconds - empty
            size, scripts = len(text.encode()) / 1000, text.count("<script")
            yield f"{name} {told[0]}", size, scripts, asked, took, told[1]


SUPPORTS = {"blh": 2, "olh": 4}
PROTOCOLS = ("grr", "subset", "sue", "oue", "she", "blh", "olh")
FAULTY = (
    *("scale_of_half_the_sensitivity", "lambda_as_epsilon", "forgets_the_rest", "off_by_one"),
    *("one_noise_for_all_bits", "one_noise_for_all_entries", "one_sided_noise"),
    *("subset_in_order", "forgets_some"),
)


def guesses(protocol: str, reports: Array, rng: Rng, clients: Any) -> Array:
    """Return LDP-Auditor's guess: uniform among the labels that a report supports."""
    if protocol in ("grr", "she"):
        return reports if protocol == "grr" else np.asarray(reports.argmax(axis=1))
    if protocol == "subset":
        return np.asarray(rng.permuted(reports, axis=1)[:, 0])
    supported = reports
    if protocol in SUPPORTS:
        hashed = clients.hashed(reports[:, :1], np.arange(clients.K)[None, :], SUPPORTS[protocol])
        supported = hashed == reports[:, 1:]
    supported = np.where(supported.any(axis=1, keepdims=True), supported, True)
    return np.asarray(np.where(supported, rng.random(supported.shape), -1).argmax(axis=1))


def their_bound(protocol: str, clients: Any, function: Any, n: int, seed: int) -> float:
    """Return ε ≥ log(TPR_low/FPR_high) for two labels, Clopper–Pearson with α/4 a tail."""
    rng, hits = np.random.default_rng(seed), []
    for value in (0, clients.K - 1):
        sizes = [min(50_000, n - start) for start in range(0, n, 50_000)]
        each = [
            (guesses(protocol, function(value, m, rng), rng, clients) == 0).sum() for m in sizes
        ]
        hits.append(int(sum(each)))
    low, high = clopper_pearson_lower(hits[0], n, 0.0025), clopper_pearson_upper(hits[1], n, 0.0025)
    return max(math.log(float(low) / float(high)), 0.0)


@case(seeds=1, samples=2000, protocols=(), epsilons=(), faults=FAULTY[:1])
def black_box(
    seeds: int = 5,
    samples: int = 1_000_000,
    protocols: tuple[str, ...] = PROTOCOLS,
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0),
    faults: tuple[str, ...] = FAULTY,
) -> Rows:
    """How strong are black-box audits of a randomizer, beside the events of LDP-Auditor?

    Seven protocols at ε = 1, 25 labels, level 0.99, then faulty clients: a second chance for the
    true bit, and others. LDP-Auditor guesses one label from a report, uniformly among those that
    the report supports.
    """
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    clients = importlib.import_module("randomizers")
    file = f"{TESTS}/randomizers.py"

    def audited(name: str, features: str, n: int, seed: int, claim: float = 1.0) -> Any:
        support = f"{file}:{features}" if features else ""
        claimed = (n, Claim(claim), support, 0.99)
        request = BlackBoxRequest(f"{file}:{name}", (0, 24), *claimed, seed=seed, path=(TESTS,))
        return audit_black_box(request)

    yield heads(
        "protocol", "samples", "ε ≥|.4f", "smallest|.4f", "LDP-Auditor|.4f", "ratio|.2f", "s|.1f"
    )
    for protocol in protocols:
        n = samples // 10 if protocol == "blh" else samples
        support = f"{protocol}_support" if protocol in SUPPORTS else ""
        ours, others, start = [], [], time.perf_counter()
        for seed in range(seeds):
            ours.append(audited(protocol, support, n, seed).epsilon_lower.value)
            others.append(their_bound(protocol, clients, getattr(clients, protocol), n, seed))
        seconds, other = (time.perf_counter() - start) / seeds, float(np.mean(others))
        ratio = np.mean(ours) / other if other else None
        yield protocol.upper(), n, np.mean(ours), min(ours), other, ratio, seconds
    n = samples // 10
    yield f"Faulty clients, {n:,} samples"
    yield heads("fault", "claimed ε", "ε ≥|.3f", "verdict", "LDP-Auditor|.3f")
    for protocol, epsilon in product([p for p in ("sue", "oue") if p in protocols], epsilons):
        name = f"extra_chance_{protocol}_{epsilon:g}".replace(".", "_")
        found = audited(name, "", n, 1, epsilon)
        other = their_bound(protocol, clients, getattr(clients, name), n, 1)
        words = f"{protocol.upper()}, the true bit has a second chance"
        yield words, epsilon, found.epsilon_lower.value, found.verdict, other
    for name in faults:
        found = audited(name, "olh_support" if name == "forgets_some" else "", n, 1)
        words = getattr(clients, name).__doc__.rstrip(".")
        yield words, 1.0, found.epsilon_lower.value, found.verdict, None
