"""The prior that a design is made for: public, private, or uniform."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ldpaudit.commands.priors import prior_over
from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.datasets.beside.priors import LabelPrior
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import traits_of
from ldpaudit.mechanisms.numeric.private_prior import (
    check_prior_budget,
    prior_budget,
    private_prior,
)
from ldpaudit.release import FloatArray, Label


@dataclass(frozen=True, eq=False)
class Prior:
    """Probabilities of the labels, and the ε that they cost.

    Attributes
    ----------
    probabilities : float64 array of shape (k,)
    source : {"file", "uniform", "private histogram"}
    epsilon : float
        ε₁ in nats that it spent; 0 where it is not computed from the data.
    """

    probabilities: FloatArray
    source: Literal["file", "uniform", "private histogram"]
    epsilon: float = 0.0


def choose_prior(
    request: ColumnRequest,
    table: LabelPrior | None,
    survey: Survey,
    classes: tuple[Label, ...],
) -> Prior:
    """Return the prior of ``classes`` that the options state.

    Parameters
    ----------
    request : ColumnRequest
    table : LabelPrior or None
        The file's.
    survey : Survey
        Its counts make a private prior.
    classes : tuple, length k

    Raises
    ------
    InputError
        If the file's labels are not the classes, it is no distribution or gives no probability to
        labels that occur; if a private prior leaves no ε; or if RR-Top-k is given none.
    """
    if table is not None:
        probabilities = prior_over(classes, table)
        # Rounding reaches neighbours of what occurs.
        if request.round is None:
            _check_covered(probabilities, survey)
        return Prior(probabilities, "file")
    if request.private_prior is not None:
        first = _first_epsilon(request, len(classes), survey.rows)
        # Few rows may do with a poor prior; where one count is noise alone, none does.
        check_prior_budget(first, 1, survey.rows)
        noisy = private_prior(survey.counts, first, request.randomness("prior"))
        return Prior(noisy, "private histogram", first)
    # On classes a uniform prior would say nothing about which labels to keep.
    if not traits_of(request.mechanism).numeric:
        raise InputError(
            f"The mechanism {request.mechanism!r} must be given a prior: --prior FILE or "
            "--private-prior EPS1."
        )
    return Prior(np.full(len(classes), 1 / len(classes)), "uniform")


def _first_epsilon(request: ColumnRequest, k: int, n: int) -> float:
    """Return ε₁ of a private prior of k labels on n rows."""
    if request.private_prior != "auto":
        assert request.private_prior is not None
        return request.private_prior
    assert request.epsilon is not None
    return prior_budget(request.epsilon, k, n)


def _check_covered(probabilities: FloatArray, survey: Survey) -> None:
    """Refuse a prior that calls labels impossible which occur."""
    impossible = survey.counts * (probabilities == 0)
    if impossible.any():
        raise InputError(
            f"The prior gives no probability to {np.count_nonzero(impossible)} label(s) that occur "
            f"in {impossible.sum()} of {survey.rows} rows; give every label that is possible a "
            "probability above 0."
        )
