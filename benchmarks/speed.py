"""How long commands and their parts take, in how much memory, and beside what."""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pandas as pd
import psutil

from benchmarks import tables
from benchmarks.planted import PUBLIC, gaussian, public, randomized
from benchmarks.runner import DATA, LDPAUDIT, ROOT, Array, Ran, Rows, case, heads, ran, timed
from ldpaudit.estimators.neighbors import count_labels, default_neighbors, neighbor_search
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, DiscreteStaircase, Exponential
from ldpaudit.mechanisms.response import RandomizedResponseTopK

FOLDER = Path(tempfile.gettempdir()) / "ldpaudit-tables"

SAMPLED = "--queries 1000000 --neighbors 1000 --only instance-loss --memory 4GiB"
EVERY = "--queries all --neighbors 1000 --only instance-loss"
CTR = "--queries 100000 --neighbors 10000 --only instance-loss"
# Each table: how it is made, and the options of its audit.
SIZES: dict[str, tuple[str, dict[str, Any], str]] = {
    "demo": ("", {}, ""),
    "30,000 × 23": ("credit", {"rows": 30_000}, ""),
    "Adult": ("adult", {}, ""),
    "diabetes130": ("diabetes130", {}, ""),
    "fertility": ("fertility", {}, ""),
    "3,000 × 2,000": ("susy", {"rows": 3_000, "columns": 2_000}, ""),
    "20,000 × 500": ("susy", {"rows": 20_000, "columns": 500}, ""),
    "300 × 100,000": ("susy", {"rows": 300, "columns": 100_000}, ""),
    "1 M × 20": ("susy", {"rows": 1_000_000, "columns": 20}, ""),
    "4.5 M × 18": ("susy", {"rows": 4_500_000}, ""),
    "4.5 M × 18, every row, raw": ("susy", {"rows": 4_500_000}, f"{EVERY} --metric raw"),
    "4.5 M × 18, every row, learned": ("susy", {"rows": 4_500_000}, f"{EVERY} --metric learned"),
    "20 M × 18, 10⁶ queries": ("susy", {"rows": 20_000_000}, SAMPLED),
    "100 M × 18, 10⁶ queries": ("susy", {"rows": 100_000_000}, SAMPLED),
    "CTR, 5 M × 10⁶ sparse, k = 10,000": ("ctr", {"rows": 5_000_000}, f"{CTR} --memory 4GiB"),
    "100,000 × 18": ("susy", {"rows": 100_000}, ""),
    "10 M × 18": ("susy", {"rows": 10_000_000}, ""),
    "3,000 × 20,000": ("susy", {"rows": 3_000, "columns": 20_000}, ""),
    "200,000 × 18": ("susy", {"rows": 200_000}, ""),
    "CTR, 50,000 × 10⁶ sparse": ("ctr", {"rows": 50_000}, CTR),
    "600 × 23": ("credit", {"rows": 600}, "--only mechanism"),
    "4,000 × 23": ("credit", {"rows": 4_000}, ""),
    "581,000 × 54, 7 classes": ("forest", {"rows": 581_000}, ""),
    "500,000 × 18, every row": ("susy", {"rows": 500_000}, EVERY),
    "4.5 M × 18, every row": ("susy", {"rows": 4_500_000}, EVERY),
    "10 M × 3": ("susy", {"rows": 10_000_000, "columns": 3}, ""),
    "100 M × 3": ("susy", {"rows": 100_000_000, "columns": 3}, ""),
}


def audited(release: Path, *options: str, limit: float = 3600.0) -> tuple[Ran, str]:
    """Audit a release with its true labels as a user would; return also what took longest."""
    truth = release.with_name(release.name.rpartition(".")[0] + ".truth.parquet")
    files = [release.with_suffix(f".audit.{kind}") for kind in ("json", "html")]
    words = [release, "--truth", truth, "--json", files[0], "--html", files[1], *options]
    done = ran(*LDPAUDIT, "run", *words, limit=limit)
    if done.status not in (0, 1, 3):
        return done, done.said.splitlines()[-1]
    audits = json.loads(files[0].read_text())["audits"]
    audits = sorted(audits, key=lambda audit: -float(audit["seconds"]))[:3]
    return done, ", ".join(f"{audit['id']} {audit['seconds']:.1f}" for audit in audits)


@case(tables=("600 × 23",))
def scale(
    tables: tuple[str, ...] = tuple(SIZES)[:10],
    options: tuple[str, ...] = (),
    limit: float = 3600.0,
    folder: Path = FOLDER,
    data: Path = DATA,
) -> Rows:
    """How long does an audit of 30,000 … 100 million rows take, and in how much memory?

    Each is one `ldpaudit run` as a user would start it, reading, report and pictures included.
    Tables that are not in the folder yet are made: keep it, 100 million rows take minutes. The
    largest, and small ones to try the others out, run when they are named:
    """
    yield heads("table", "seconds|.1f", "processor s|.1f", "peak GiB|.2f", "exit", "longest, s")
    for name in tables:
        table, made, own = SIZES[name]
        if not table:
            done, longest = ran(*LDPAUDIT, "demo", limit=limit), "–"
        else:
            release = planted(table, made, folder, data)
            done, longest = audited(release, *own.split(), *options, limit=limit)
        yield name, done.wall, done.used, done.peak, done.status, longest


assert scale.__doc__
scale.__doc__ += f"{', '.join(list(SIZES)[10:])}."


def planted(table: str, made: dict[str, Any], folder: Path, data: Path) -> Path:
    """Return the path of a release, made where it is not there yet."""
    words = "-".join(map(str, (table, *made.values())))
    release = folder / f"{words}.{'svm' if table == 'ctr' else 'parquet'}"
    if not release.exists():
        # What is cut off leaves nothing that looks like a release.
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            if table in PUBLIC:
                randomized(Path(place), table, *public(data, table))
            else:
                tables.make(table, Path(place), **made)
            for file in sorted(Path(place).iterdir(), reverse=True):
                file.rename(folder / file.name)
    return release


GROWTH = ("4,000 × 23", "30,000 × 23", "1 M × 20", "4.5 M × 18", "3,000 × 2,000")


@case(tables=("600 × 23",), by_hand=False)
def growth(
    tables: tuple[str, ...] = GROWTH,
    before: str = "",
    rounds: int = 1,
    by_hand: bool = True,
    limit: float = 300.0,
    minutes: float = 20.0,
    folder: Path = FOLDER,
    data: Path = DATA,
) -> Rows:
    """How do time and memory grow, beside an earlier commit and what a user would pick instead?

    Medians of rounds in which all alternate: whole audits with true labels by this code, and by
    that of the commit `--before`; by hand, scikit-learn's boosting fitted on one half and scored on
    the other, and the neighbours of 20,000 rows by faiss IVF. Their threads wait without spinning,
    so that processor seconds are work. What takes longer than `--limit` seconds is ended, and
    after `--minutes` no further cell begins. Other tables of `scale` ("3,000 × 20,000", "581,000 ×
    54, 7 classes", "500,000 × 18, every row", "10 M × 3", "100 M × 3") run when they are named.
    """
    yield heads("table", "what", "wall s|.1f", "processor s|.1f", "peak GiB|.2f", "wall, ratio|.2f")
    python, start = sys.executable, time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        codes = {"this code": ROOT}
        if before:
            codes["before"] = _installed(before, Path(place) / "before")
        for name in tables:
            table, made, own = SIZES[name]
            release = planted(table, made, folder, data)
            files = [release.with_suffix(f".audit.{kind}") for kind in ("json", "html")]
            asked = ["run", release, "--truth", release.with_suffix(".truth.parquet"), "--quiet"]
            asked += ["--json", files[0], "--html", files[1], "--exit-zero", *own.split()]
            ways: dict[str, list[Any]] = {
                name: ["env", f"PYTHONPATH={code}", python, "-P", "-m", "ldpaudit", *asked]
                for name, code in codes.items()
            }
            if by_hand:
                hand = ["env", f"PYTHONPATH={ROOT}", "OMP_WAIT_POLICY=PASSIVE", python]
                hand += ["-m", "benchmarks.by_hand"]
                ways |= {one: [*hand, one, release] for one in ("boosting", "neighbours")}
            taken: dict[str, list[Ran]] = {way: [] for way in ways}
            for _, (way, words) in product(range(rounds), ways.items()):
                if time.perf_counter() - start < 60 * minutes:
                    taken[way].append(ran(*words, limit=limit))
            yield from _medians(name, taken, limit)


@case(rounds=1, rows=200)
def startup(rounds: int = 5, rows: int = 5_000) -> Rows:
    """How long does a command take until it says something?

    ``--help`` to its end, and an audit to its first line on a terminal: medians of wall seconds,
    and of processor seconds, which are what a machine with nothing else to do would need.
    """
    yield heads("command", "wall s|.2f", "processor s|.2f")
    with tempfile.TemporaryDirectory() as place:
        release = planted("credit", {"rows": rows}, Path(place), DATA)
        asked: dict[str, list[Any]] = {
            "ldpaudit --help": ["--help"],
            "ldpaudit run --help": ["run", "--help"],
            "ldpaudit run, first line": ["run", release],
        }
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
        for _, (name, words) in product(range(rounds), asked.items()):
            if "first" in name:
                taken[name].append(_first_line(*LDPAUDIT, *words))
            else:
                done = ran(*LDPAUDIT, *words)
                taken[name].append((done.wall, done.used))
    for name, times in taken.items():
        walls, used = zip(*times, strict=True)
        yield name, statistics.median(walls), statistics.median(used)


def _first_line(*words: object) -> tuple[float, float]:
    """Return wall and processor seconds until a command says something on a terminal."""
    ours, theirs = os.openpty()
    start = time.perf_counter()
    process = subprocess.Popen(list(map(str, words)), stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    os.read(ours, 1)
    times = psutil.Process(process.pid).cpu_times()
    wall = time.perf_counter() - start
    process.kill()
    process.wait()
    os.close(ours)
    return wall, times.user + times.system


def _installed(commit: str, folder: Path) -> Path:
    """Return a folder with an earlier commit, installed there with the parts that it registers."""
    source, installed = folder / "source", folder / "installed"
    source.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "x", "-C", str(source)], input=packed.stdout, check=True)
    words = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(installed),
        str(source),
    ]
    subprocess.run([sys.executable, *words], check=True)
    return installed


def _medians(name: str, taken: dict[str, list[Ran]], limit: float) -> Rows:
    """Yield the medians of the runs of each way, or why there are none."""
    base = None
    for way, runs in taken.items():
        late = any(one.wall > limit for one in runs)
        if not runs or late or any(one.status for one in runs):
            said = (runs[-1].said if runs else "").splitlines()
            why = f"more than {limit:g} s" if late else said[-1] if said else "not run"
            peak = max((one.peak for one in runs), default=None)
            yield name, f"{way}: {why}", None, None, peak, None
            continue
        wall, used, peak = (
            statistics.median(getattr(one, part) for one in runs)
            for part in ("wall", "used", "peak")
        )
        base = wall if way == "this code" else base
        yield name, way, wall, used, peak, None if base is None else wall / base


@case(names=("adult",), rows=500, made=(3.0,), options=("--only", "mechanism"))
def real_releases(
    names: tuple[str, ...] = (*PUBLIC, "mnist-0-vs-9", "mixture"),
    rows: int = 0,
    made: tuple[float, ...] = (1.0, 3.0),
    options: tuple[str, ...] = (),
    data: Path = DATA,
) -> Rows:
    """How long does an audit of public tables take, and is the verdict right?

    Randomized response, declared at ε = 1 and made at 1 or, dishonest, at 3. Insiders have the true
    labels, outsiders the release alone. The mixture is a million rows of 20 columns.
    """
    yield heads("release", "exit", "seconds|.1f", "peak GiB|.2f", "verdict")
    for name, epsilon in product(names, made):
        story = "honest" if epsilon == 1 else "dishonest"
        if name == "mixture":
            points, labels, _ = gaussian(1_000_000, 20, np.random.default_rng(0), 0.5)
            frame, series = pd.DataFrame(points).add_prefix("x"), pd.Series(labels)
        else:
            frame, series = public(data, name)
        with tempfile.TemporaryDirectory() as place:
            given = (frame[: rows or None], series[: rows or None])
            release, truth = randomized(Path(place), f"{name}.{story}", *given, epsilon)
            for mode, more in (("insider", ["--truth", truth]), ("outsider", [])):
                page = f"--html={place}/page.html"
                done = ran(*LDPAUDIT, "run", release, page, *options, *more)
                verdict = done.said.splitlines()[0]
                yield f"{name}, {story}, {mode}", done.status, done.wall, done.peak, verdict


@case(rows=400, workers=0, neighbors=10)
def cluster(rows: int = 400_000, neighbors: int = 1000, workers: int = 2) -> Rows:
    """How fast are local Dask workers beside the threads of one process, and what does a cell cost?

    A mixture of two classes, every row a query: nearly all of the work is counting neighbours.
    Results must be equal but for times. Then the cost of the index per row that it holds, and of a
    query per row that it is compared with. ``--workers 0`` leaves the workers out.
    """
    words = ["--queries", "all", "--neighbors", f"{neighbors}", "--only", "instance-loss"]
    words += ["--only", "mechanism", "--seed", "1", "--exit-zero"]
    ways = {"one process": ["--threads", f"{workers or 1}"]}
    if workers:
        ways["local workers"] = ["--threads", "1", "--cluster", f"local:{workers}"]
    yield heads(f"{rows:,} × 18, k = {neighbors:,}", "wall s|.1f", "processor s|.1f", "same")
    results = []
    with tempfile.TemporaryDirectory() as place:
        release = tables.make("susy", Path(place), rows)
        for name, way in ways.items():
            done, said = audited(release, *words, *way)
            if done.status:
                raise SystemExit(f"An audit failed: {said}")
            stored = json.loads(release.with_suffix(".audit.json").read_text())
            results.append([{**e} for e in stored["estimates"]])
            yield name, done.wall, done.used, "yes" if results[-1] == results[0] else "NO"
    rng, asked = np.random.default_rng(1), 32_768
    index, queries = (rng.standard_normal((n, 18), dtype=np.float32) for n in (rows, asked))
    labels, k = rng.integers(0, 2, rows).astype(np.int32), default_neighbors(rows, 18)
    search, built = timed(partial(neighbor_search, index, labels, k, 2, asked, seed=1), 3)
    counted = timed(partial(count_labels, search, queries), 3)[1] / (asked * search.visited)
    yield f"b = {built / rows:.2e} s per indexed row; c = {counted:.2e} s per query and row"


@case(rows=200, noises=(0.4,), rounds=1, audit="mechanism", processes=(1,))
def sweep(
    rows: int = 8000,
    noises: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4),
    rounds: int = 2,
    audit: str = "",
    processes: tuple[int, ...] = (1, 2),
    data: Path = DATA,
) -> Rows:
    """How much does a sweep save against a shell loop of privatize and run?

    The loop audits all rows of Adult and trains no learner; the sweep holds a fifth out and trains
    one for each λ. Both run the same audits. Rounds alternate.
    """
    options = ["--threads", "1", "--quiet", *(["--only", audit] if audit else ["--skip", "renyi"])]
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        table, release, truth = (Path(name) / f"{part}.parquet" for part in ("data", "r", "truth"))
        pd.read_parquet(data / "adult.parquet").head(rows).to_parquet(table)
        made = ["-o", release, "--mechanism", "rr", "--label", "income", "--experimental"]
        made += ["--seed", "1", "--secret", truth, "--overwrite", "--quiet", "--lambda"]
        grid = ["--mechanism", "rr", "--label", "income", "--lambda", ",".join(map(str, noises))]
        for _ in range(rounds):
            spent = 0.0
            for noise in noises:
                spent += ran(*LDPAUDIT, "privatize", table, *made, noise).wall
                spent += ran(*LDPAUDIT, "run", release, "--truth", truth, *options).wall
            seconds.setdefault("privatize and run, in a loop", []).append(spent)
            for n in processes:
                done = ran(*LDPAUDIT, "sweep", table, *grid, "--processes", n, *options)
                seconds.setdefault(f"sweep, processes: {n}", []).append(done.wall)
    yield heads(f"Adult, {rows:,} rows, {len(noises)} λ", "seconds, median|.1f", "time ratio|.2f")
    base = next(iter(seconds.values()))
    for key, found in seconds.items():
        ratios = [one / other for one, other in zip(found, base, strict=True)]
        yield key, statistics.median(found), statistics.median(ratios)


@case(rows=400, minutes=(0.05,))
def advise(rows: int = 5_000, minutes: tuple[float, ...] = (1.0,), data: Path = DATA) -> Rows:
    """How long does a release that `advise` simulates take?

    On rows of Adult, with the default policy and one thread; the time of starting, reading and
    ranking is spread over the releases.
    """
    yield heads(
        f"Adult, {rows:,} rows, minutes",
        *("releases", "wall s|.1f", "processor s|.1f", "processor s a release|.2f"),
    )
    with tempfile.TemporaryDirectory() as name:
        table, found = Path(name) / "data.parquet", Path(name) / "advice.json"
        pd.read_parquet(data / "adult.parquet").head(rows).to_parquet(table)
        for allowed in minutes:
            words = ["--label", "income", "--minutes", allowed, "--threads", 1, "--quiet"]
            done = ran(*LDPAUDIT, "advise", table, *words, "--json", found)
            simulated = json.loads(found.read_text())["run"]["simulated"]
            each = done.used / simulated if simulated else None
            yield f"{allowed:g}", simulated, done.wall, done.used, each


IN_MEMORY = """
import sys
import numpy as np, pandas as pd
frame = pd.read_parquet(sys.argv[1])
rng = np.random.default_rng()
classes = np.unique(frame["label"])
noise = len(classes) / (len(classes) - 1 + np.exp(1.0))
new = rng.choice(classes, len(frame))
frame["label"] = np.where(rng.random(len(frame)) < noise, new, frame["label"])
frame.to_parquet(sys.argv[2])
"""


@case(rows=(400,), rounds=1, alone=True)
def privatize(
    rows: tuple[int, ...] = (1_000_000, 300_000, 3_000_000), rounds: int = 3, alone: bool = False
) -> Rows:
    """How fast is privatizing, and in how much memory, beside a script that does it in memory?

    The script is what a user would write: pandas reads the file, NumPy draws the labels in floating
    point, pandas writes the file. Runs alternate; imports count. ``alone``: only the command.
    """
    yield heads("rows × 18", "", "seconds|.2f", "million rows/s|.2f", "time ratio|.2f", "GiB|.2f")
    for n, _ in product(rows, range(rounds)):
        with tempfile.TemporaryDirectory() as place:
            data, out = tables.make("susy", Path(place), n, claimed=False), f"{place}/out.parquet"
            plain = None if alone else ran(LDPAUDIT[0], "-c", IN_MEMORY, data, out)
            words = ["--label", "label", "--mechanism", "rr", "--epsilon", "1", "--overwrite"]
            done = ran(*LDPAUDIT, "privatize", data, "-o", out, *words)
        if plain:
            yield n, "pandas in memory", plain.wall, n / plain.wall / 1e6, 1.0, plain.peak
        ratio = done.wall / plain.wall if plain else None
        yield n, "privatize", done.wall, n / done.wall / 1e6, ratio, done.peak


@case(rows=10_000)
def mechanisms(rows: int = 10_000_000) -> Rows:
    """How fast is sampling?"""
    grid, classes = LabelRange(0, 52, 1), tuple(range(53))
    listed: list[tuple[Any, int, int]] = [
        (RandomizedResponse.from_epsilon(tuple(range(k)), 1.0), k, rows) for k in (2, 10, 53, 401)
    ]
    listed += [(RandomizedResponseTopK(classes, tuple(range(20)), 1.0), 53, rows)]
    listed += [(Exponential(grid, 1.0), 53, rows), (DiscreteLaplace(grid, 1.0), 53, rows // 10)]
    listed += [(DiscreteStaircase(grid, 1.0), 53, rows // 10)]
    columns = ("os.urandom, million labels/s|.1f", "NumPy PCG64, million labels/s|.1f")
    yield heads("mechanism, labels", *columns)
    for mechanism, k, n in listed:
        labels = (np.arange(n) % k).astype(np.int32)
        speeds = []
        for rng in (None, np.random.default_rng(0)):
            mechanism.sample(labels[:1000], rng)
            speeds.append(n / timed(partial(mechanism.sample, labels, rng))[1] / 1e6)
        yield f"{mechanism.name}, {k}", *speeds


def inverted_file(index: Array, labels: Array, asked: Array, k: int, probes: int) -> Array:
    """Return the share of ones among k neighbours, found by faiss' inverted files."""
    cells = round(4 * math.sqrt(len(index)))
    file = faiss.IndexIVFFlat(faiss.IndexFlatL2(index.shape[1]), index.shape[1], cells)
    file.train(index[: 48 * cells])
    file.add(index)
    file.nprobe = probes
    found = []
    for start in range(0, len(asked), 2_000):
        near = file.search(asked[start : start + 2_000], k)[1]
        found.append(np.where(near >= 0, labels[near], 0).sum(axis=1) / (near >= 0).sum(axis=1))
    return np.concatenate(found)


@case(rows=(3000,), asked=100, probes=(8,))
def neighbors(
    rows: tuple[int, ...] = (250_000, 500_000, 2_250_000),
    asked: int = 20_000,
    probes: tuple[int, ...] = (64, 128),
) -> Rows:
    """How fast are neighbour label counts, beside faiss.IndexIVFFlat at the same error?

    18 columns of two Gaussian classes, so that the true η(x) is known; the queries look among so
    many other rows for the k that an audit takes by default. Processor seconds of one thread, cells
    and training included. The error is that of η̂: an approximate search costs smoothness, not
    validity. ``--probes`` without a number leaves faiss out, which is much slower.
    """
    yield heads("search", "k", "RMSE of η̂|.4f", "processor s|.1f")
    for n in rows:
        rng = np.random.default_rng(20261120)
        index, labels, _ = gaussian(n, 18, rng)
        queries, _, eta = gaussian(asked, 18, rng)
        k = default_neighbors(n, 18)

        def ours(index: Array = index, labels: Array = labels, k: int = k) -> Array:
            counts = count_labels(neighbor_search(index, labels, k, 2, asked), queries)  # noqa: B023
            return np.asarray(counts[:, 1] / counts.sum(axis=1))

        ways = {"ldpaudit": ours}
        for number in probes:
            way = partial(inverted_file, index, labels, queries, k, number)
            ways[f"IVF, nprobe {number}"] = way
        for name, search in ways.items():
            found, seconds = timed(search)
            rmse = math.sqrt(np.mean((found - eta) ** 2))
            yield f"{name}, {n:,} rows", k, rmse, seconds
