"""RR-on-Bins: time of the optimal bins, against the published dynamic program.

python benchmarks/rr_on_bins.py [--repeats 5]

Priors are synthetic (52 labels like weeks worked, log-normal-like otherwise). Times are processor
seconds of one thread, the least of the repeats. The published program (Ghazi et al. 2023,
Algorithm 2, its table over the number of bins d) is written here with the same vector operations.
"""

import argparse
import math
import os
import platform

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
from measuring import timed

from ldpaudit.mechanisms.bins import bin_costs, optimal_bins

Floats = npt.NDArray[np.float64]


def problem(k: int) -> tuple[Floats, Floats]:
    labels = np.arange(float(k))
    prior = np.exp(-0.5 * (np.log(labels + 1) - math.log(k) / 1.7) ** 2) / (labels + 1)
    if k == 52:
        prior = 0.3 + 0.5 * np.exp(-(((labels - 25) / 20) ** 2))
        prior[-1] = 0
        prior *= 0.55 / prior.sum()
        prior[-1] = 0.45
    return labels, prior / prior.sum()


def published(labels: Floats, prior: Floats, epsilon: float) -> float:
    """The table A[i][j] of the paper: the first i labels in j bins."""
    k, growth = len(labels), math.expm1(epsilon)
    costs = bin_costs("squared", labels, prior, growth)
    before = np.full(k + 1, np.inf)
    before[0], best = 0.0, math.inf
    for bins in range(1, k + 1):
        after = np.full(k + 1, np.inf)
        for last in range(k):
            after[last + 1] = (before[: last + 1] + costs.ending_at(last, slice(0, last + 1))).min()
        best = min(best, after[k] / (bins + growth))
        before = after
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("## RR-on-Bins\n")
    print(
        f"{platform.machine()}, {os.cpu_count()} processors, one thread; Python "
        f"{platform.python_version()}, numpy {np.__version__}\n"
    )
    print("| k | loss function | ε | time (ms) | loss | bins | published (ms) | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for k in (52, 401, 10_000):
        labels, prior = problem(k)
        classes = tuple(labels.tolist())
        for name in ("squared", "poisson", "absolute"):
            for epsilon in (0.5, 4.0):
                count = repeats if k < 1000 else 1 + 2 * (name == "squared")
                design, best = timed(
                    lambda c=classes, p=prior, e=epsilon, n=name: optimal_bins(c, p, e, n), count
                )
                table = ""
                if name == "squared" and k < 1000:
                    value, seconds = timed(
                        lambda x=labels, p=prior, e=epsilon: published(x, p, e), 1
                    )
                    assert abs(value / design.loss - 1) < 1e-9
                    table = f"{seconds * 1e3:.0f} | {seconds / best:.0f}×"
                print(
                    f"| {k:,} | {name} | {epsilon:g} | {best * 1e3:.1f} | {design.loss:.8g} "
                    f"| {len(design.mechanism.outputs)} | {table or ' | '} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
