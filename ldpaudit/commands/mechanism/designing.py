"""``design``: all mechanisms compared for a prior, a loss and ε, the best first."""

import math
from collections.abc import Callable
from time import perf_counter
from typing import Final

import numpy as np

from ldpaudit.commands.mechanism.analysis import (
    MOST_LABELS,
    analyse,
    expected_loss,
    grid,
    read_domain,
)
from ldpaudit.commands.mechanism.design_result import Design, Scored, StoredGrid
from ldpaudit.commands.mechanism.result import Analysis
from ldpaudit.commands.priors import prior_over
from ldpaudit.commands.requests import DesignRequest
from ldpaudit.datasets.probabilities import numeric_column, read_prior
from ldpaudit.errors import InputError, refuse
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.interface import Problem, Proposal
from ldpaudit.mechanisms.invariant import invariant_channel
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import check_prior_budget, private_prior
from ldpaudit.mechanisms.parameters import check_epsilon, check_prior
from ldpaudit.mechanisms.registry import candidates
from ldpaudit.mechanisms.response import ExplicitChannel
from ldpaudit.release import FloatArray
from ldpaudit.work.progress import NoProgress, Progress

# How much smaller, relatively, another loss may be than one that is proved to be the least.
_ROUNDING: Final = 1e-9
_INVARIANT: Final = (
    "Released labels have the prior's shares, so counts need no correction where the prior is "
    "right; it must be public: not come from the labels that are to be released."
)


def design(request: DesignRequest, progress: Progress) -> Design | Analysis:
    """Compare all mechanisms, or analyse the invariant channel (InputError: not valid options)."""
    if request.invariant:
        return _invariant(request)
    if request.labels is None:
        raise InputError("Give the labels: --labels LO:HI:STEP.")
    labels = grid(LabelRange.parse(request.labels))
    refuse(
        labels.steps >= MOST_LABELS,
        f"At most {MOST_LABELS} labels can be compared; use a larger step.",
    )
    epsilon = check_epsilon(request.epsilon)
    prior, spent = _prior(request, labels, epsilon)
    problem = Problem(labels, prior, epsilon - spent, request.loss)
    scored = compare_mechanisms(problem, progress=progress)
    span = {"low": labels.low, "high": labels.high, "step": labels.spacing}
    return Design(
        loss=problem.loss,
        labels=StoredGrid(**span, count=labels.steps + 1),
        epsilon=problem.epsilon,
        prior_epsilon=spent,
        total_epsilon=spent + problem.epsilon,
        prior=problem.prior.tolist(),
        best=best(scored),
        best_unbiased=best(scored, unbiased=True),
        candidates=scored,
    )


def _invariant(request: DesignRequest) -> Analysis:
    """Analyse the channel that keeps the prior's shares, and most labels, at ε."""
    # InputError where there is no public prior, or it, the labels or ε are not valid.
    refuse(
        request.prior is None or request.private_epsilon is not None or request.data is not None,
        "--invariant needs a public prior (--prior FILE), and no private one.",
    )
    domain = read_domain(None, request.labels, request.prior, request)
    assert domain.classes is not None
    assert domain.prior is not None
    channel = invariant_channel(domain.classes, domain.prior, request.epsilon)
    found = analyse(ExplicitChannel(channel), domain.prior, (_INVARIANT,))
    found._designed = channel
    return found


def best(candidates: tuple[Scored, ...], *, unbiased: bool = False) -> int | None:
    """Return the place of the best usable candidate, or unbiased one; None where there is none."""
    fit = (
        i for i, s in enumerate(candidates) if s.cost < math.inf and (s.unbiased or not unbiased)
    )
    return next(fit, None)


def _prior(request: DesignRequest, labels: LabelRange, epsilon: float) -> tuple[FloatArray, float]:
    """Return the prior that the options state, and ε₁ in nats that it costs."""
    data, column, spent = request.data, request.column, request.private_epsilon
    if spent is None:
        if request.prior is None or data is not None or column is not None:
            raise InputError(
                "Give a public prior (--prior FILE) or a private one (--private-prior EPS1 "
                "--data FILE --label COL)."
            )
        return prior_over(labels.classes, read_prior(request.prior, request)), 0.0
    if request.prior is not None or data is None or column is None:
        raise InputError("A private prior needs --data FILE and --label COL, and no --prior.")
    refuse(
        not check_epsilon(spent) < epsilon,
        f"The private prior must leave something of epsilon = {epsilon:g} for the labels. "
        f"It spends {spent:g}.",
    )
    codes = labels.codes(numeric_column(data, column, request))
    counts = np.bincount(codes, minlength=labels.steps + 1)
    check_prior_budget(spent, len(counts), len(codes))
    # The operating system's randomness: the noise protects real labels.
    return private_prior(counts, spent), spent


def compare_mechanisms(problem: Problem, *, progress: Progress | None = None) -> tuple[Scored, ...]:
    """Build every candidate and return them, the least expected loss first."""
    # What is proved to be optimal comes before what only rounding puts below it. InputError if the
    # problem itself is not valid: ε, the prior, or labels below 0 under the Poisson loss.
    check_epsilon(problem.epsilon)
    check_prior(problem.prior, problem.labels.steps + 1)
    refuse(
        problem.loss == "poisson" and problem.labels.low < 0,
        "The Poisson log loss must be used with labels that are not negative.",
    )
    progress, scored = progress or NoProgress(), []
    for name, variant, build in candidates():
        progress.step(f"{name} {variant}".strip())
        scored.append(_score(name, variant, build, problem))
    ordered = sorted(scored, key=lambda one: (one.cost, not one.optimal, one.loss is None))
    least = ordered[0].loss or 0.0
    for one in ordered:
        near = one.cost <= least + _ROUNDING * max(abs(least), abs(one.cost))
        if one.optimal and one.cost < math.inf and near:
            return (one, *(s for s in ordered if s is not one))
    return tuple(ordered)


def _score(
    name: str, variant: str, build: Callable[[Problem], Proposal], problem: Problem
) -> Scored:
    start = perf_counter()
    try:
        proposal = build(problem)
        loss = expected_loss(proposal.mechanism, problem.prior, problem.loss)
    except InputError as error:
        seconds = perf_counter() - start
        return Scored(mechanism=name, variant=variant, seconds=seconds, reason=str(error))
    seconds, made = perf_counter() - start, proposal.mechanism
    errors, among = label_errors(made), "" if math.isinf(loss) else proposal.optimal_among
    why = "Outputs at or below 0 are possible, where this loss is infinite."
    return Scored(
        mechanism=name,
        variant=variant,
        epsilon=made.epsilon,
        loss=loss,
        max_bias=None if errors is None else errors.largest_bias,
        unbiased=errors is not None and errors.unbiased,
        outputs=math.inf if made.channel is None else len(made.channel.outputs),
        seconds=seconds,
        optimal=bool(among),
        optimal_among=among or None,
        reason=why if math.isinf(loss) else None,
        declaration={"name": made.name, **made.declaration()},
        made=made,
        errors=errors,
    )
