"""The optimal unbiased randomizer against the mesh linear programs: time, loss and certified gap.

python benchmarks/optimal_unbiased.py [--mesh-limit 600] [--repeats 3]

Priors are synthetic: 52 labels like weeks worked (45 % at the top) and 401 labels like clipped
prices (log-normal). Times are processor seconds of one thread, the least of the repeats; a linear
program runs once. Two forms of one program on scipy's HiGHS: "printed" has a row for every pair of
labels and output (Badanidiyuru et al. 2023, Algorithm 1), "two-sided" compares each probability
with a lowest one from above and below.
"""

import argparse
import math
import multiprocessing
import os
import platform
import queue as queue_module
import time
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import scipy
import scipy.optimize
import scipy.sparse as sp
from measuring import timed

from ldpaudit.mechanisms.bins import debiased_outputs
from ldpaudit.mechanisms.unbiased import closed_form, lowered_growth, optimal_unbiased

Floats = npt.NDArray[np.float64]


def weeks_like() -> tuple[Floats, Floats]:
    labels = np.arange(1, 53.0)
    prior = 0.3 + 0.5 * np.exp(-(((labels - 26) / 20) ** 2))
    prior[-1] = 0
    prior *= 0.55 / prior.sum()
    prior[-1] = 0.45
    return labels, prior


def price_like() -> tuple[Floats, Floats]:
    labels = np.arange(401.0)
    prior = np.exp(-0.5 * (np.log(labels + 1) - 3.5) ** 2) / (labels + 1)
    return labels, prior / prior.sum()


def exact_closed_form(labels: Floats, prior: Floats, epsilon: float) -> Decimal:
    """The closed form's loss in 60 decimal digits."""
    getcontext().prec = 60
    p, y = [Decimal(v) for v in prior.tolist()], [Decimal(v) for v in labels.tolist()]
    total = sum(p)
    p, growth = [v / total for v in p], Decimal(epsilon).exp() - 1
    above, size = Decimal(1), Decimal(0)
    for v in range(1, len(y)):
        above -= p[v - 1]
        size += (y[v] - y[v - 1]) * ((1 + growth * above) * (1 + growth * (1 - above))).sqrt()
    mean = sum(a * b for a, b in zip(p, y, strict=True))
    spread = sum(a * (b - mean) ** 2 for a, b in zip(p, y, strict=True))
    return ((size / growth) ** 2 - spread) / 2


def closed_form_table(repeats: int) -> None:
    print("### Closed form\n")
    print("| k | ε | time (ms) | loss | error of the formula | error with the rounding of ε |")
    print("|---|---|---|---|---|---|")
    for labels, prior in (weeks_like(), price_like()):
        for epsilon in (0.1, 0.3, 0.5, 0.69):
            classes = tuple(labels.tolist())
            _ = optimal_unbiased(classes, prior, epsilon)
            found, best = timed(lambda c=classes, p=prior, e=epsilon: many(c, p, e), repeats)
            exact = exact_closed_form(labels, prior, epsilon)
            formula = closed_form(labels, prior / prior.sum(), math.expm1(epsilon))[1]
            errors = [abs(Decimal(v) / exact - 1) for v in (formula, found.loss)]
            print(
                f"| {len(labels)} | {epsilon} | {best * 10:.3f} | {found.loss:.9g} "
                f"| {errors[0]:.1e} | {errors[1]:.1e} |"
            )


def many(classes: tuple[float, ...], prior: Floats, epsilon: float) -> Any:
    for _ in range(100):
        found = optimal_unbiased(classes, prior, epsilon)
    return found


def program_table(repeats: int) -> None:
    print("\n### Interval program where the test fails\n")
    print("| k | ε | method | time (s) | loss | gap/loss | outputs | closed form | bias | ε − ε̂ |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for labels, prior in (weeks_like(), price_like()):
        for epsilon in (0.1, 0.5, 0.8, 1, 2, 4, 6, 8):
            classes = tuple(labels.tolist())
            design, best = timed(
                lambda c=classes, p=prior, e=epsilon: optimal_unbiased(c, p, e), repeats
            )
            _, closed = closed_form(labels, prior, lowered_growth(epsilon))
            mechanism = design.mechanism
            columns = mechanism.weights.weights.T
            ratio = max(Fraction(int(column.max()), int(column.min())) for column in columns)
            slack = epsilon - math.log(ratio)
            print(
                f"| {len(labels)} | {epsilon} | {design.method} | {best:.4f} | {design.loss:.9g} "
                f"| {design.gap:.1e} | {len(mechanism.channel.outputs)} | {closed:.9g} "
                f"| {np.abs(mechanism.bias()).max():.0e} | {slack:.0e} |",
                flush=True,
            )


def printed(labels: Floats, prior: Floats, epsilon: float, outputs: Floats) -> float:
    """Algorithm 1 as it is printed: M[y', i] ≤ e^ε M[y, i] for all ordered pairs of labels."""
    k, n = len(labels), len(outputs)
    pairs = [(a, b) for a in range(k) for b in range(k) if a != b]
    select = sp.csr_array(
        (
            np.tile([1.0, -math.exp(epsilon)], len(pairs)),
            (np.repeat(np.arange(len(pairs)), 2), np.array(pairs).ravel()),
        ),
        shape=(len(pairs), k),
    )
    return solved(labels, prior, outputs, sp.kron(select, sp.identity(n)), 0)


def two_sided(labels: Floats, prior: Floats, epsilon: float, outputs: Floats) -> float:
    """lowest[i] ≤ M[y, i] ≤ e^ε lowest[i]."""
    k, n = len(labels), len(outputs)
    own = sp.identity(k * n)
    lowest = sp.vstack([sp.identity(n)] * k)
    rows = sp.vstack([sp.hstack([own, -math.exp(epsilon) * lowest]), sp.hstack([-own, lowest])])
    return solved(labels, prior, outputs, rows, n)


def solved(labels: Floats, prior: Floats, outputs: Floats, rows: Any, extra: int) -> float:
    k, n = len(labels), len(outputs)
    losses = prior[:, None] * 0.5 * (outputs - labels[:, None]) ** 2
    scale = np.abs(outputs).max()
    equal = sp.vstack(
        [sp.kron(sp.identity(k), row[None, :]) for row in (np.ones(n), outputs / scale)]
    )
    found = scipy.optimize.linprog(
        np.concatenate([losses.ravel(), np.zeros(extra)]),
        A_ub=sp.csr_array(rows),
        b_ub=np.zeros(rows.shape[0]),
        A_eq=sp.csr_array(sp.hstack([equal, sp.csr_array((2 * k, extra))])),
        b_eq=np.concatenate([np.ones(k), labels / scale]),
        method="highs",
    )
    return float(found.fun)


FORMS = {"printed": printed, "two-sided": two_sided}


def _worker(queue: Any, form: str, arguments: tuple[Any, ...]) -> None:
    start = time.process_time()
    loss = FORMS[form](*arguments)
    queue.put((loss, time.process_time() - start))


def limited(form: str, arguments: tuple[Any, ...], limit: float) -> tuple[float, float] | None:
    """Run one form in a process of its own; None where it does not end within the limit."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_worker, args=(queue, form, arguments))
    process.start()
    try:
        result: tuple[float, float] = queue.get(timeout=limit)
    except queue_module.Empty:
        process.terminate()
        result = None  # type: ignore[assignment]
    process.join()
    return result


def mesh_table(limit: float, repeats: int) -> None:
    print("\n### Mesh linear programs, side by side\n")
    print("| k | ε | outputs | form | LP time (s) | LP loss | exact loss | exact time | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases = [
        (weeks_like(), 1.0, 52, "printed"),
        (weeks_like(), 1.0, 52, "two-sided"),
        (weeks_like(), 1.0, 416, "two-sided"),
        (weeks_like(), 4.0, 416, "two-sided"),
        (price_like(), 1.0, 401, "two-sided"),
    ]
    for (labels, prior), epsilon, n, form in cases:
        classes = tuple(labels.tolist())
        design, best = timed(
            lambda c=classes, p=prior, e=epsilon: optimal_unbiased(c, p, e), repeats
        )
        ends = debiased_outputs(labels, math.expm1(epsilon))
        mesh = np.linspace(ends[0], ends[-1], n)
        found = limited(form, (labels, prior, epsilon, mesh), limit)
        head = f"| {len(labels)} | {epsilon:g} | {n} | {form} "
        tail = f"| {design.loss:.9g} | {best * 1e3:.1f} ms "
        if found is None:
            print(f"{head}| not ended in {limit:.0f} (elapsed) | {tail}| |", flush=True)
            continue
        loss, seconds = found
        above = 100 * (loss / design.loss - 1)
        print(
            f"{head}| {seconds:.2f} | {loss:.9g} (+{above:.2g} %) {tail}| {seconds / best:.0f}× |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh-limit", type=float, default=600)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print("## Optimal unbiased randomizer\n")
    print(
        f"{platform.machine()}, {os.cpu_count()} processors, one thread; Python "
        f"{platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}\n"
    )
    closed_form_table(arguments.repeats)
    program_table(arguments.repeats)
    mesh_table(arguments.mesh_limit, arguments.repeats)


if __name__ == "__main__":
    main()
