"""``design``: from the labels' prior, a loss and ε to the best mechanism, all compared."""

from typing import Any

import numpy as np

from ldpaudit.commands.mechanism.comparison import Design, Scored, best, compare_mechanisms
from ldpaudit.commands.mechanism.design_page import design_page
from ldpaudit.commands.mechanism.design_text import print_design
from ldpaudit.commands.mechanism.domain import MOST_LABELS, grid, prior_over
from ldpaudit.commands.mechanism.request import DesignRequest
from ldpaudit.datasets.beside.priors import numeric_column, read_prior
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import Problem
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.numeric.private_prior import private_prior
from ldpaudit.mechanisms.parameters import check_epsilon
from ldpaudit.release import FloatArray
from ldpaudit.reports.json_report import as_json
from ldpaudit.terminal import progress_on_terminal


def design(request: DesignRequest) -> Design:
    """Compare all mechanisms, print them and write what is asked for.

    Raises
    ------
    InputError, OutputError
        Where the request cannot be met; nothing is written then.
    """
    request.outputs.check([request.prior, request.data])
    labels = grid(LabelRange.parse(request.labels))
    if labels.steps >= MOST_LABELS:
        raise InputError(f"At most {MOST_LABELS} labels can be compared; use a larger step.")
    epsilon = check_epsilon(request.epsilon)
    spent = _prior_epsilon(request, epsilon)
    prior = _prior(request, labels, spent)
    problem = Problem(labels, prior, epsilon - spent, request.loss)
    with progress_on_terminal(request.quiet) as progress:
        scored = compare_mechanisms(problem, reference=request.reference, progress=progress)
    found = Design(problem, scored, spent)
    print_design(found)
    request.outputs.write(lambda: as_json(as_result(found)), lambda: design_page(found))
    request.outputs.announce()
    return found


def _prior_epsilon(request: DesignRequest, epsilon: float) -> float:
    given = (request.private_epsilon, request.data, request.column)
    if request.private_epsilon is None:
        if request.prior is None or any(part is not None for part in given):
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
        return prior_over(labels.classes, read_prior(request.prior))
    assert request.data is not None
    assert request.column is not None
    codes = labels.codes(numeric_column(request.data, request.column))
    counts = np.bincount(codes, minlength=labels.steps + 1)
    # The operating system's randomness: the noise protects real labels.
    return private_prior(counts, spent)


def as_result(found: Design) -> dict[str, Any]:
    """Return a design as what its JSON file holds."""
    problem, over, fair = (
        found.problem,
        best(found.candidates),
        best(found.candidates, unbiased=True),
    )
    return {
        "schema_version": "1.0",
        "loss": problem.loss,
        "labels": {"low": problem.labels.low, "high": problem.labels.high}
        | {"step": problem.labels.spacing, "count": problem.labels.steps + 1},
        "epsilon": problem.epsilon,
        "prior_epsilon": found.prior_epsilon,
        "total_epsilon": found.total_epsilon,
        "prior": problem.prior.tolist(),
        "best": None if over is None else found.candidates.index(over),
        "best_unbiased": None if fair is None else found.candidates.index(fair),
        "candidates": [_entry(scored) for scored in found.candidates],
    }


def _entry(scored: Scored) -> dict[str, Any]:
    errors = scored.errors
    return {
        "mechanism": scored.name,
        "variant": scored.variant,
        "epsilon": scored.epsilon,
        "loss": scored.loss,
        "max_bias": None if errors is None else errors.largest_bias,
        "unbiased": scored.unbiased,
        "outputs": scored.outputs,
        "seconds": scored.seconds,
        "optimal": bool(scored.optimal_among),
        "optimal_among": scored.optimal_among or None,
        "reason": scored.reason or None,
        "declaration": scored.declaration(),
    }
