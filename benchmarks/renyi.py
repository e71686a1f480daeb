"""Certified Rényi divergences of Gaussians, beside cells and plug-in estimates, and the audit.

python benchmarks/renyi.py [--seeds 200] [--rows 100000] [--audit-rows 1000000]
    [--dimensions 1,10] [--orders 1.1,2] [--divergences 0.25,1] [--store CELLS.jsonl]
python benchmarks/renyi.py --merge CELLS.jsonl MORE.jsonl

The grid can be computed in parts: --store keeps each cell, --merge prints the table of them all.

P = N(μ, I), Q = N(0, I) in d dimensions with D_α = α‖μ‖²/2 as wanted; n rows a side. Half of them
fit a logistic regression, a cheap discriminator whose form is the true one; the other half is
bounded at 95 %. The competitor is what a score table gives: 50 quantile cells of the same score,
Clopper–Pearson bounds for every cell's two shares at a level shared by all of them.
"""

import argparse
import itertools
import json
import math
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.renyi.audit import AUDIT
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.renyi import Scores, bounds_on, renyi_points, split_scores
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

DIMENSIONS = (1, 10)
ORDERS = (1.1, 1.5, 2.0, 3.0, 5.0, 10.0)
DIVERGENCES = (0.25, 0.5, 1.0, 2.0)
CELLS = 50
LEVEL = 0.05
FALSE_ALARM = 1e-6

Floats = npt.NDArray[np.float64]


def scores(n: int, d: int, shift: float, rng: np.random.Generator) -> Scores:
    """Return held-out scores of a logistic regression that the other half fitted."""
    p = rng.standard_normal((n, d))
    q = rng.standard_normal((n, d))
    p += shift / math.sqrt(d)
    half = n // 2
    labels = np.repeat([1, 0], half)
    model = LogisticRegression().fit(np.concatenate([p[:half], q[:half]]), labels)
    return Scores(model.decision_function(p[half:]), model.decision_function(q[half:]))


def cell_bound(found: Scores, order: float) -> float:
    """Return Σ_c p_c^α q_c^{1−α} from below with a bound for each cell's shares."""
    n_p, n_q = len(found.p) // 10, len(found.q) // 10
    both = np.concatenate([found.p[:n_p], found.q[:n_q]])
    edges = np.quantile(both, np.arange(1, CELLS) / CELLS)
    p, q = found.p[n_p:], found.q[n_q:]
    in_p = np.bincount(np.searchsorted(edges, p), minlength=CELLS)
    in_q = np.bincount(np.searchsorted(edges, q), minlength=CELLS)
    tail = LEVEL / (2 * CELLS)
    low = clopper_pearson_lower(in_p, len(p), tail)
    high = clopper_pearson_upper(in_q, len(q), tail)
    return max(0.0, math.log(float((low**order * high ** (1 - order)).sum())) / (order - 1))


def donsker_varadhan(found: Scores, order: float) -> float:
    """Return the form with plain means."""
    means = np.exp((order - 1) * found.p).mean(), np.exp(order * found.q).mean()
    return float(order / (order - 1) * np.log(means[0]) - np.log(means[1]))


def setting(n: int, d: int, order: float, divergence: float, seeds: int) -> dict[str, float]:
    shift = math.sqrt(2 * divergence / order)
    certified, cells, points, plug_in, supported = [], [], [], [], 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, d, int(100 * order), int(100 * divergence)])
        found = scores(n, d, shift, rng)
        certified.append(
            bounds_on(*split_scores(found, rng=rng), [order])[0].at(LEVEL) / divergence
        )
        cells.append(cell_bound(found, order) / divergence)
        point = renyi_points(found, [order])[0]
        points.append(point.value / divergence)
        plug_in.append(donsker_varadhan(found, order) / divergence)
        supported += point.supported
    return {
        "certified": float(np.mean(certified)),
        "above": float(np.sum(np.asarray(certified) > 1)),
        "cells": float(np.mean(cells)),
        "point": float(np.mean(points)),
        "spread": float(np.std(points)),
        "worst": float(np.max(np.abs(np.asarray(points) - 1))),
        "plug_in": float(np.mean(plug_in)),
        "supported": supported / seeds,
    }


def numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def computed(given: argparse.Namespace) -> Iterator[dict[str, float]]:
    """Yield the wanted cells one by one, each stored as soon as it is known."""
    wanted = itertools.product(given.dimensions, given.orders, given.divergences)
    for d, order, divergence in wanted:
        found = setting(given.rows, int(d), order, divergence, given.seeds)
        cell = {"d": d, "order": order, "divergence": divergence, "rows": given.rows}
        cell |= {"seeds": given.seeds, **found}
        if given.store:
            with given.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")
        yield cell


def merged(files: Iterable[Path], rows: int) -> list[dict[str, float]]:
    """Return the stored cells of that size in the table's order; of two alike the later."""
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    cells = {(c["d"], c["order"], c["divergence"]): c for c in lines if c["rows"] == rows}
    return [cells[key] for key in sorted(cells)]


def table(cells: Iterable[dict[str, float]]) -> Iterator[str]:
    yield (
        "| d | α | D_α | seeds | certified | above the truth | cells | ratio | estimate "
        "| its spread | supported | plug-in |"
    )
    yield "|" + "---|" * 12
    for r in cells:
        ratio = f"{r['certified'] / r['cells']:.2f}" if r["cells"] > 0.01 else "–"
        said = f"{r['point']:.3f}" if r["supported"] > 0.5 else "not supported"
        yield (
            f"| {r['d']:g} | {r['order']:g} | {r['divergence']:g} | {r['seeds']} "
            f"| {r['certified']:.3f} | {r['above']:.0f} "
            f"| {r['cells']:.3f} | {ratio} | {said} | {r['spread']:.3f} | {r['supported']:.2f} "
            f"| {r['plug_in']:.3f} |"
        )


def audit_row(n: int, d: int) -> str:
    rng = np.random.default_rng(1)
    codes = (rng.random(n) < 0.4).astype(np.int32)
    points = rng.standard_normal((n, d), dtype=np.float32)
    points += np.float32(1.0 / math.sqrt(d)) * codes[:, None].astype(np.float32)
    claim = RandomizedResponse.from_epsilon((0, 1), 1.0)
    table = FeatureTable(points, np.empty((n, 0), dtype=np.int32), (), d)
    released = ReleasedLabels(claim.sample(codes, rng))
    release = Release(table, released, (0, 1), (0, 1), TrueLabels(codes))
    start, busy = time.perf_counter(), time.process_time()
    finding = AUDIT.run(AuditContext(release, claim, Plan(seed=1)))
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    curve = next(c for c in finding.curves if c.id == "renyi.release")
    truth = 2.0 * 1.0 / 2 + claim.channel.rdp(2.0)
    low = curve.value[curve.x.index(2.0)]
    return f"| {n:,} × {d} | {seconds:.1f} | {busy:.1f} | {low / truth:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimensions", type=numbers, default=DIMENSIONS)
    parser.add_argument("--orders", type=numbers, default=ORDERS)
    parser.add_argument("--divergences", type=numbers, default=DIVERGENCES)
    parser.add_argument("--store", type=Path, help="append each cell to this file as JSON")
    parser.add_argument("--merge", type=Path, nargs="+", help="print stored cells, compute none")
    parser.add_argument("--audit-rows", type=int, default=1_000_000, help="0: no audit")
    given = parser.parse_args()
    if given.seeds or given.merge:
        limit = int(binom.isf(FALSE_ALARM, given.seeds, LEVEL))
        print(f"### {given.rows:,} rows a side, mean share of D_α; of {given.seeds} ", end="")
        print(f"seeds at most {limit} above\n")
        for line in table(merged(given.merge, given.rows) if given.merge else computed(given)):
            print(line, flush=True)
    if not given.audit_rows or given.merge:
        return
    print("\n### The whole audit alone, 1 thread, its model included\n")
    print("| rows × columns | seconds | of the processor | certified at α = 2 / truth |")
    print("|---|---|---|---|")
    for n in (given.audit_rows // 20, given.audit_rows):
        print(audit_row(n, 20), flush=True)


if __name__ == "__main__":
    main()
