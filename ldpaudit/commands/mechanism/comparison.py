"""The comparison of mechanisms for one prior, loss and ε: every candidate's expected loss."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from ldpaudit.commands.mechanism.analysis import expected_loss
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.analysis import LabelErrors, label_errors
from ldpaudit.mechanisms.design import Candidate, Problem, Proposal
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.parameters import check_epsilon, check_prior
from ldpaudit.mechanisms.registry import candidates
from ldpaudit.progress import NoProgress, Progress

_ROUNDING: Final = 1e-9
"""How much smaller, relatively, another loss may be than one that is proved to be the least."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A candidate and what it costs.

    Attributes
    ----------
    name, variant : str
        The mechanism's name and which of its forms.
    mechanism : Mechanism or None
        None where it could not be built.
    epsilon : float or None
        Its exact ε in nats, never above the one asked for.
    loss : float or None
        Its expected loss under the prior, ∞ where it is infinite; None where it is not defined.
    errors : LabelErrors or None
        Bias and variance by label.
    outputs : float or None
        How many outputs it has, ∞ where not finitely many.
    seconds : float
        What building and scoring it took.
    optimal_among : str
        The mechanisms among which it is proved to be the best, "" where nothing is proved.
    reason : str
        Why the loss is infinite or not defined.
    """

    name: str
    variant: str
    mechanism: Mechanism | None
    epsilon: float | None
    loss: float | None
    errors: LabelErrors | None
    outputs: float | None
    seconds: float
    optimal_among: str = ""
    reason: str = ""

    @property
    def unbiased(self) -> bool:
        """Whether E[ŷ | y] = y for every label."""
        return self.errors is not None and self.errors.unbiased

    @property
    def usable(self) -> bool:
        """Whether its loss is a finite number."""
        return self.loss is not None and math.isfinite(self.loss)

    @property
    def title(self) -> str:
        """Name and form."""
        return f"{self.name} ({self.variant})" if self.variant else self.name

    def declaration(self) -> Mapping[str, Any] | None:
        """Return what a release made with it would declare."""
        if self.mechanism is None:
            return None
        return {"name": self.mechanism.name, **self.mechanism.declaration()}


@dataclass(frozen=True, eq=False)
class Design:
    """All candidates for a problem, the best first, and what the prior cost.

    Attributes
    ----------
    problem : Problem
        Its ε is what the mechanism gets: ε₂ = ε − ε₁ with a private prior.
    candidates : tuple of Scored
    prior_epsilon : float
        ε₁ in nats, 0 for a public prior.
    """

    problem: Problem
    candidates: tuple[Scored, ...]
    prior_epsilon: float = 0.0

    @property
    def total_epsilon(self) -> float:
        """ε₁ + ε₂ in nats: what prior and labels together spend."""
        return self.prior_epsilon + self.problem.epsilon


def compare_mechanisms(
    problem: Problem, *, reference: bool = False, progress: Progress | None = None
) -> tuple[Scored, ...]:
    """Build every candidate and return them, the least expected loss first.

    Parameters
    ----------
    problem : Problem
        Labels, prior, ε and loss.
    reference : bool
        Whether to solve the mesh linear program too.
    progress : Progress, optional
        Told of each candidate.

    Raises
    ------
    InputError
        If the problem itself is not valid: ε, the prior, or labels below 0 under the Poisson loss.
    """
    check_epsilon(problem.epsilon)
    check_prior(problem.prior, problem.labels.steps + 1)
    if problem.loss == "poisson" and problem.labels.low < 0:
        raise InputError("The Poisson log loss must be used with labels that are not negative.")
    told, scored = progress or NoProgress(), []
    for name, candidate in candidates(reference):
        told.step(f"{name} {candidate.variant}".strip())
        scored.append(_score(name, candidate, problem))
    return _in_order(scored)


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


def _outputs_of(mechanism: Mechanism) -> float:
    """Return how many outputs there are, ∞ where they are not finitely many."""
    channel = mechanism.channel
    return math.inf if channel is None else len(channel.outputs)


def best(scored: tuple[Scored, ...], *, unbiased: bool = False) -> Scored | None:
    """Return the best usable candidate, or the best unbiased one; None where there is none."""
    able = (s for s in scored if s.usable and (s.unbiased or not unbiased))
    return next(able, None)


def _score(name: str, candidate: Candidate, problem: Problem) -> Scored:
    start = perf_counter()
    try:
        proposal = candidate.build(problem)
        loss = expected_loss(proposal.mechanism, problem.prior, problem.loss)
    except InputError as reason:
        taken = perf_counter() - start
        return Scored(name, candidate.variant, None, None, None, None, None, taken, "", str(reason))
    return _scored(name, candidate, proposal, loss, perf_counter() - start)


def _scored(
    name: str, candidate: Candidate, proposal: Proposal, loss: float, seconds: float
) -> Scored:
    mechanism = proposal.mechanism
    epsilon = mechanism.epsilon
    assert epsilon is not None
    infinite = math.isinf(loss)
    return Scored(
        name,
        candidate.variant,
        mechanism,
        float(epsilon),
        loss,
        label_errors(mechanism),
        _outputs_of(mechanism),
        seconds,
        "" if infinite else proposal.optimal_among,
        "Outputs at or below 0 are possible, where this loss is infinite." if infinite else "",
    )
