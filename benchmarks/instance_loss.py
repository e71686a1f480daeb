"""Certified E[ν] on a Gaussian mixture, bounds on means, and the audit's time.

python benchmarks/instance_loss.py [--seeds 200] [--large-seeds 40] [--rows 1000000] [--threads 2]

The mixture: 18 dimensions, class means 0.25 apart in each coordinate, P(Y = 1) = 0.457, labels
flipped with probability 0.1. E[ν] = 18 · 0.25²/2 + 0.8 log 9 = 2.3203 nats exactly. Half of the
rows fit a logistic regression (at most 200,000 of them) and a channel; the other half is bounded.
"""

import argparse
import math
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from ldpaudit.audits.instance_loss.audit import AUDIT
from ldpaudit.audits.instance_loss.neighbourhoods import measured_channel, measured_shares
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.estimators.intervals.bounded_mean import mean_lower
from ldpaudit.estimators.mean_loss import HeldOut, certified_mean_loss, claimed_mean_loss
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

DIMENSIONS, WEIGHT, PRIOR, FLIP = 18, 0.25, 0.457, 0.1
TRUTH = DIMENSIONS * WEIGHT**2 / 2 + (1 - 2 * FLIP) * math.log((1 - FLIP) / FLIP)
MOST_FITTED = 200_000
CHANNEL = np.array([[1 - FLIP, FLIP], [FLIP, 1 - FLIP]])

Floats = npt.NDArray[np.float64]
Points = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]
Draw = Callable[[np.random.Generator, int], Floats]


def mixture(n: int, d: int, rng: np.random.Generator) -> tuple[Points, Codes, Codes]:
    labels = (rng.random(n) < PRIOR).astype(np.int32)
    points = rng.standard_normal((n, d), dtype=np.float32)
    points[:, :DIMENSIONS] += np.float32(WEIGHT) * labels[:, None].astype(np.float32)
    released = np.where(rng.random(n) < FLIP, 1 - labels, labels).astype(np.int32)
    return points, labels, released


def held_out(points: Points, labels: Codes, released: Codes, fit: slice, test: slice) -> HeldOut:
    some = slice(fit.start, min(fit.stop, fit.start + MOST_FITTED))
    model = LogisticRegression(C=1.0).fit(points[some], labels[some])
    return HeldOut(
        np.maximum(model.predict_proba(points[test]), 1e-9),
        labels[test],
        released[test],
        measured_shares(labels[fit], 2),
        measured_channel(labels[fit], released[fit], 2, 2),
    )


def certified(n: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    rows = mixture(n, DIMENSIONS, rng)
    halves = slice(0, n // 2), slice(n // 2, n)
    found = certified_mean_loss(held_out(*rows, *halves), rng=rng)
    other = certified_mean_loss(held_out(*rows, *halves[::-1]), rng=rng)
    result = {"certified": found.at(0.05), "both halves": (found.at(0.025) + other.at(0.025)) / 2}
    result["under the claim"] = outsider(*rows, *halves, rng)
    return result


def outsider(
    points: Points,
    labels: Codes,
    released: Codes,
    fit: slice,
    test: slice,
    rng: np.random.Generator,
) -> float:
    """The outsider's bound; the model is fitted on true labels and carried through the channel."""
    data = held_out(points, labels, released, fit, test)
    seen = data.posterior @ CHANNEL
    return claimed_mean_loss(seen, data.released, CHANNEL, data.prior, rng=rng).at(0.05)


def certified_table(seeds: int, large_seeds: int) -> Iterator[str]:
    names = ("certified", "both halves", "under the claim")
    yield f"| rows | seeds | {' | '.join(names)} | misses (limit) |"
    yield "|---" * (len(names) + 3) + "|"
    for n in (5_000, 20_000, 100_000, 1_000_000):
        count = large_seeds if n > 100_000 else seeds
        runs = [certified(n, seed) for seed in range(count)]
        means = [statistics.fmean(run[name] for run in runs) / TRUTH for name in names]
        misses = sum(run["certified"] > TRUTH for run in runs)
        limit = int(binom.isf(1e-6, count, 0.05))
        cells = " | ".join(f"{mean:.4f}" for mean in means)
        yield f"| {n:,} | {count} | {cells} | {misses} ({limit}) |"


def empirical_bernstein(values: Floats, alpha: float) -> float:
    """Maurer & Pontil (2009), Theorem 4, for values in [0, 1]."""
    n, log = len(values), math.log(2 / alpha)
    return float(
        values.mean() - math.sqrt(2 * values.var(ddof=1) * log / n) - 7 * log / (3 * (n - 1))
    )


def constant_bet(values: Floats, alpha: float) -> float:
    """Betting with the one λ that is best if the variance is known beforehand."""
    log = math.log(1 / alpha)
    bet = math.sqrt(2 * log / (len(values) * values.var()))
    low, high = 0.0, float(values.mean())
    for _ in range(50):
        middle = (low + high) / 2
        won = np.log1p(np.minimum(bet, 0.75 / max(middle, 1e-12)) * (values - middle)).sum()
        low, high = (middle, high) if won >= log else (low, middle)
    return low


def mean_table() -> Iterator[str]:
    draws: dict[str, Draw] = {
        "Beta(2, 5)": lambda rng, n: rng.beta(2, 5, n),
        "coin 0.5": lambda rng, n: (rng.random(n) < 0.5).astype(np.float64),
        "coin 0.01": lambda rng, n: (rng.random(n) < 0.01).astype(np.float64),
        "uniform ± 0.01": lambda rng, n: 0.5 + 0.01 * rng.uniform(-1, 1, n),
    }
    yield "| values | n | α | normal | mean_lower | constant λ | Maurer–Pontil | seconds |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, draw in draws.items():
        for n in (10_000, 500_000):
            yield f"| {name} | {n:,} | 0.05 | {-float(ndtri(0.05)):.3f} | {mean_row(draw, n)} |"


def mean_row(draw: Draw, n: int, alpha: float = 0.05) -> str:
    rng = np.random.default_rng(0)
    samples = [draw(rng, n) for _ in range(30 if n < 100_000 else 8)]
    start = time.perf_counter()
    ours = [mean_lower(v, alpha, 0, 1) for v in samples]
    seconds = (time.perf_counter() - start) / len(samples)
    others = [[f(v, alpha) for v in samples] for f in (constant_bet, empirical_bernstein)]
    distances = [
        statistics.fmean(
            (v.mean() - bound) / v.std() * math.sqrt(n)
            for v, bound in zip(samples, bounds, strict=True)
        )
        for bounds in (ours, *others)
    ]
    return " | ".join(f"{d:.2f}" for d in distances) + f" | {seconds:.3f}"


def audit_table(n: int, threads: int) -> Iterator[str]:
    yield "| rows × columns | mode | models (shared), s | the rest, s | certified / E[ν] |"
    yield "|---|---|---|---|---|"
    points, labels, released = mixture(n, 20, np.random.default_rng(1))
    table = FeatureTable(points, np.zeros((n, 0), np.int32), (), 20)
    names = ("a", "b")
    for truth in (TrueLabels(labels), None):
        release = Release(table, ReleasedLabels(released), names, names, truth)
        context = AuditContext(
            release, RandomizedResponse(names, 2 * FLIP), Plan(1, threads=threads)
        )
        start = time.perf_counter()
        cross_fitted_posterior(context, "released" if truth is None else "truth")
        middle = time.perf_counter()
        finding = AUDIT.run(context)
        end = time.perf_counter()
        mode = "outsider (if the claim holds)" if truth is None else "insider"
        share = finding.estimates[0].value / TRUTH
        yield f"| {n:,} × 20 | {mode} | {middle - start:.1f} | {end - middle:.1f} | {share:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--large-seeds", type=int, default=40)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print("### Lower bounds on means: distance from the sample mean in standard errors\n")
    print(*mean_table(), sep="\n")
    print(f"\n### Certified lower bound on E[ν] = {TRUTH:.4f} at 95 %, mean share of it\n")
    for line in certified_table(options.seeds, options.large_seeds):
        print(line, flush=True)
    print(f"\n### The whole audit, {options.threads} threads\n")
    print(*audit_table(options.rows, options.threads), sep="\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\n{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; ",
        end="",
    )
    print(f"load {os.getloadavg()[0]:.1f} at the end; peak memory {peak:.1f} GiB")


if __name__ == "__main__":
    main()
