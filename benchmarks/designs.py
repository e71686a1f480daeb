"""Mechanisms that are designed for a prior, beside the published programs."""

import math
import multiprocessing
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from benchmarks.runner import Array, Rows, case, heads, timed
from ldpaudit.extras.kinds.mechanisms.bins import bin_costs, debiased_outputs, optimal_bins
from ldpaudit.extras.kinds.mechanisms.unbiased import closed_form, optimal_unbiased
from ldpaudit.mechanisms.label_range import Loss


def problem(k: int) -> tuple[Array, Array]:
    """Return labels and a prior: 52 like weeks worked, 45 % at the top; else log-normal."""
    labels = np.arange(float(k))
    if k == 52:
        prior = 0.3 + 0.5 * np.exp(-(((labels - 25) / 20) ** 2))
        return labels, np.append(0.55 * prior[:-1] / prior[:-1].sum(), 0.45)
    prior = np.exp(-0.5 * (np.log(labels + 1) - math.log(k) / 1.7) ** 2) / (labels + 1)
    return labels, prior / prior.sum()


def published_bins(labels: Array, prior: Array, epsilon: float) -> float:
    """Return the loss by Ghazi et al. (2023), Algorithm 2: the first i labels in j bins."""
    k, growth = len(labels), math.expm1(epsilon)
    costs = bin_costs("squared", labels, prior, growth)
    before, best = np.r_[0.0, np.full(k, np.inf)], math.inf
    for bins in range(1, k + 1):
        ends = [(before[: i + 1] + costs.ending_at(i, slice(0, i + 1))).min() for i in range(k)]
        before = np.r_[np.inf, ends]
        best = min(best, before[k] / (bins + growth))
    return best


@case(labels=(52,), losses=("squared",), repeats=1)
def rr_on_bins(
    labels: tuple[int, ...] = (52, 401, 10_000),
    losses: tuple[Loss, ...] = ("squared", "poisson", "absolute"),
    repeats: int = 3,
) -> Rows:
    """How fast are optimal bins, beside the published dynamic program?

    Processor seconds of one thread, the least of the repeats. The published program has the same
    vector operations.
    """
    columns = ("ms|.1f", "loss|.8g", "bins", "published, ms|.0f", "ratio|.0f")
    yield heads("k", "loss function", "ε", *columns)
    for k, name, epsilon in product(labels, losses, (0.5, 4.0)):
        values, prior = problem(k)
        design, best = timed(partial(optimal_bins, tuple(values), prior, epsilon, name), repeats)
        beside: tuple[Any, ...] = (None, None)
        if name == "squared" and k < 1000:
            loss, other = timed(partial(published_bins, values, prior, epsilon))
            assert abs(loss / design.loss - 1) < 1e-9
            beside = (1e3 * other, other / best)
        yield k, name, epsilon, 1e3 * best, design.loss, len(design.mechanism.outputs), *beside


def mesh_program(labels: Array, prior: Array, epsilon: float, mesh: Array) -> float:
    """Return the loss of the program of Badanidiyuru et al. (2023) over a mesh of outputs.

    Their Algorithm 1 has a row for every pair of labels and output; this form of it, lowest[i] ≤
    M[y, i] ≤ e^ε lowest[i], is much faster.
    """
    k, n = len(labels), len(mesh)
    own, lowest = sp.identity(k * n), sp.vstack([sp.identity(n)] * k)
    above, below = sp.hstack([own, -math.exp(epsilon) * lowest]), sp.hstack([-own, lowest])
    losses, scale = prior[:, None] * 0.5 * (mesh - labels[:, None]) ** 2, np.abs(mesh).max()
    equal = sp.vstack([sp.kron(sp.identity(k), r[None, :]) for r in (np.ones(n), mesh / scale)])
    found = linprog(  # type: ignore[call-overload]
        np.concatenate([losses.ravel(), np.zeros(n)]),
        A_ub=sp.csr_array(sp.vstack([above, below])),
        b_ub=np.zeros(2 * k * n),
        A_eq=sp.csr_array(sp.hstack([equal, sp.csr_array((2 * k, n))])),
        b_eq=np.concatenate([np.ones(k), labels / scale]),
        method="highs",
    )
    return float(found.fun)


@case("optimal_unbiased", mesh=6, labels=(6,), repeats=1, epsilons=(1.0,), limit=60.0)
def unbiased(
    labels: tuple[int, ...] = (52, 401),
    epsilons: tuple[float, ...] = (0.1, 0.3, 0.5, 0.69, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
    mesh: int = 416,
    repeats: int = 3,
    limit: float = 600.0,
) -> Rows:
    """How good is the optimal unbiased randomizer, and how fast beside a mesh linear program?

    Processor seconds of one thread, the least of the repeats. The program runs at ε of 1 and 4,
    once, in a process that is ended at the limit of seconds.
    """
    columns = ("outputs", "closed form|.9g", "bias|.0e")
    beside = ("mesh program, s|.2f", "its loss|.9g", "time ratio|.0f")
    yield heads("k", "ε", "method", "ms|.1f", "loss|.9g", "gap/loss|.1e", *columns, *beside)
    for k, epsilon in product(labels, epsilons):
        values, prior = problem(k)
        work = partial(optimal_unbiased, tuple(values), prior, epsilon)
        design, own = timed(work, repeats)
        growth, mechanism = math.expm1(epsilon), design.mechanism
        bias, outputs = np.abs(mechanism.bias()).max(), len(mechanism.channel.outputs)
        numbers = (outputs, closed_form(values, prior, growth)[1], bias)
        found: tuple[Any, ...] = (None, None, None)
        if epsilon in (1.0, 4.0):
            ends = debiased_outputs(values, growth)
            places = np.linspace(ends[0], ends[-1], mesh)
            program = partial(mesh_program, values, prior, epsilon, places)
            with multiprocessing.get_context("fork").Pool(1) as pool:
                try:
                    loss, seconds = pool.apply_async(timed, (program,)).get(limit)
                    found = (seconds, loss, seconds / own)
                except multiprocessing.TimeoutError:
                    found = (f"> {limit:g}", None, None)
        gap = design.gap / design.loss
        yield k, epsilon, design.method, 1e3 * own, design.loss, gap, *numbers, *found
