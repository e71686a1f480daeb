"""The work of ``design``: from a prior, a loss and ε to all candidates, the best first."""

import math
from time import perf_counter
from typing import Final

import numpy as np

from ldpaudit.commands.mechanism.describe.work import expected_loss
from ldpaudit.commands.mechanism.design.result import Design, Scored
from ldpaudit.commands.mechanism.domain import MOST_LABELS, grid
from ldpaudit.commands.mechanism.request import DesignRequest
from ldpaudit.commands.priors import prior_over
from ldpaudit.datasets.beside.priors import numeric_column, read_prior
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.design import Candidate, Problem
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.numeric.private_prior import check_prior_budget, private_prior
from ldpaudit.mechanisms.parameters import check_epsilon, check_prior
from ldpaudit.mechanisms.registry import candidates
from ldpaudit.release import FloatArray
from ldpaudit.running.progress import NoProgress, Progress

_ROUNDING: Final = 1e-9
"""How much smaller, relatively, another loss may be than one that is proved to be the least."""


def design(request: DesignRequest, progress: Progress) -> Design:
    """Compare all mechanisms.

    Raises
    ------
    InputError
        If the labels, ε or the prior are not valid, or the options contradict one another.
    """
    labels = grid(LabelRange.parse(request.labels))
    if labels.steps >= MOST_LABELS:
        raise InputError(f"At most {MOST_LABELS} labels can be compared; use a larger step.")
    epsilon = check_epsilon(request.epsilon)
    spent = _prior_epsilon(request, epsilon)
    problem = Problem(labels, _prior(request, labels, spent), epsilon - spent, request.loss)
    scored = compare_mechanisms(problem, progress=progress)
    return Design(problem, scored, spent)


def _prior_epsilon(request: DesignRequest, epsilon: float) -> float:
    private = (request.private_epsilon, request.data, request.column)
    if request.private_epsilon is None:
        if request.prior is None or any(part is not None for part in private):
            raise InputError(
                "State a public prior (--prior FILE) or a private one (--private-prior EPS1 "
                "--data FILE --label COL)."
            )
        return 0.0
    if request.prior is not None or request.data is None or request.column is None:
        raise InputError("A private prior needs --data FILE and --label COL, and no --prior.")
    spent = check_epsilon(request.private_epsilon)
    if not spent < epsilon:
        raise InputError(
            f"The private prior must leave something of epsilon = {epsilon:g} for the labels. "
            f"It spends {spent:g}."
        )
    return spent


def _prior(request: DesignRequest, labels: LabelRange, spent: float) -> FloatArray:
    if request.prior is not None:
        return prior_over(labels.classes, read_prior(request.prior, request))
    assert request.data is not None
    assert request.column is not None
    codes = labels.codes(numeric_column(request.data, request.column, request))
    counts = np.bincount(codes, minlength=labels.steps + 1)
    check_prior_budget(spent, len(counts), len(codes))
    # The operating system's randomness: the noise protects real labels.
    return private_prior(counts, spent)


def compare_mechanisms(problem: Problem, *, progress: Progress | None = None) -> tuple[Scored, ...]:
    """Build every candidate and return them, the least expected loss first.

    Parameters
    ----------
    problem : Problem
        Labels, prior, ε and loss.
    progress : Progress, optional

    Raises
    ------
    InputError
        If the problem itself is not valid: ε, the prior, or labels below 0 under the Poisson loss.
    """
    check_epsilon(problem.epsilon)
    check_prior(problem.prior, problem.labels.steps + 1)
    if problem.loss == "poisson" and problem.labels.low < 0:
        raise InputError("The Poisson log loss must be used with labels that are not negative.")
    progress, scored = progress or NoProgress(), []
    for name, candidate in candidates():
        progress.step(f"{name} {candidate.variant}".strip())
        scored.append(_score(name, candidate, problem))
    return _in_order(scored)


def _score(name: str, candidate: Candidate, problem: Problem) -> Scored:
    start = perf_counter()
    try:
        proposal = candidate.build(problem)
        loss = expected_loss(proposal.mechanism, problem.prior, problem.loss)
    except InputError as error:
        return Scored(name, candidate.variant, perf_counter() - start, reason=str(error))
    seconds, mechanism = perf_counter() - start, proposal.mechanism
    assert mechanism.epsilon is not None
    infinite = math.isinf(loss)
    return Scored(
        name,
        candidate.variant,
        seconds,
        mechanism,
        float(mechanism.epsilon),
        loss,
        label_errors(mechanism),
        "" if infinite else proposal.optimal_among,
        "Outputs at or below 0 are possible, where this loss is infinite." if infinite else "",
    )


def _in_order(scored: list[Scored]) -> tuple[Scored, ...]:
    """Order by loss; what is proved to be optimal comes before what only rounding puts below it."""
    ordered = sorted(scored, key=_rank)
    for one in [s for s in ordered if s.optimal_among and s.usable]:
        least = ordered[0].loss
        assert least is not None
        assert one.loss is not None
        if one.loss <= least + _ROUNDING * max(abs(least), abs(one.loss)):
            return (one, *(s for s in ordered if s is not one))
    return tuple(ordered)


def _rank(scored: Scored) -> tuple[float, int]:
    place = math.inf if scored.loss is None else scored.loss
    return place, (0 if scored.optimal_among else 1) + 2 * (scored.loss is None)
