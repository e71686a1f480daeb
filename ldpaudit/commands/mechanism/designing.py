"""``design``: all mechanisms compared for a prior, a loss and ε, the best first."""

import math
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, Final

import numpy as np
from pydantic import ConfigDict, Field

from ldpaudit.commands.mechanism.analysis import (
    MOST_LABELS,
    analyse,
    expected_loss,
    grid,
    read_domain,
)
from ldpaudit.commands.mechanism.result import Analysis
from ldpaudit.commands.priors import prior_over
from ldpaudit.commands.requests import DesignRequest
from ldpaudit.commands.shell import Said, Stored
from ldpaudit.datasets.probabilities import numeric_column, read_prior
from ldpaudit.errors import InputError, refuse
from ldpaudit.mechanisms.analysis import LabelErrors, label_errors
from ldpaudit.mechanisms.interface import Mechanism, Problem, Proposal
from ldpaudit.mechanisms.invariant import invariant_channel
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import check_prior_budget, private_prior
from ldpaudit.mechanisms.parameters import check_epsilon, check_prior
from ldpaudit.mechanisms.registry import candidates
from ldpaudit.mechanisms.response import ExplicitChannel
from ldpaudit.release import FloatArray
from ldpaudit.result import Frozen, Number
from ldpaudit.result.numbers import number
from ldpaudit.work.files import write_whole
from ldpaudit.work.progress import NoProgress, Progress

# Beyond which the numbers of a linear program are noise.
_DECIMALS: Final = 9
# How much smaller, relatively, another loss may be than one that is proved to be the least.
_ROUNDING: Final = 1e-9
_INVARIANT: Final = (
    "Released labels have the prior's shares, so counts need no correction where the prior is "
    "right; it must be public: not come from the labels that are to be released."
)
UNITS: Final = {"squared": "½(ŷ − y)²", "absolute": "|ŷ − y|", "poisson": "ŷ − y log ŷ"}


class StoredGrid(Frozen):
    """The labels: numbers at equal steps.

    Attributes
    ----------
    low
        The smallest label.
    high
        The largest label.
    step
        The distance of neighbouring labels.
    count
        How many labels there are.
    """

    low: Number
    high: Number
    step: Number
    count: int


class Scored(Frozen):
    """A mechanism that was compared, and what it costs.

    Attributes
    ----------
    mechanism
        Its name.
    variant
        Which of its forms; empty where it has one only.
    epsilon
        Its exact ε in nats, never above the one asked for; null where it could not be built.
    loss
        Its expected loss under the prior; null where it is not defined.
    max_bias
        How far the released label is off on average, for the label where that is most.
    unbiased
        Whether the released label is right on average, whatever the label.
    outputs
        How many outputs it has.
    seconds
        What building and scoring it took.
    optimal
        Whether it is proved to be the best of some kind of mechanism.
    optimal_among
        Of which kind.
    reason
        Why its loss is infinite or not defined.
    declaration
        What a release that was made with it declares.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    mechanism: str
    variant: str
    epsilon: Number | None = None
    loss: Number | None = None
    max_bias: Number | None = None
    unbiased: bool = False
    outputs: Number | None = None
    seconds: float
    optimal: bool = False
    optimal_among: str | None = None
    reason: str | None = None
    declaration: dict[str, Any] | None = None
    made: Mechanism | None = Field(None, exclude=True)
    errors: LabelErrors | None = Field(None, exclude=True)

    @property
    def cost(self) -> float:
        """Its loss; ∞ where that is not defined."""
        return math.inf if self.loss is None else self.loss

    @property
    def title(self) -> str:
        """Name and form."""
        return f"{self.mechanism} ({self.variant})" if self.variant else self.mechanism


class Design(Stored):
    """All mechanisms compared for a prior, a loss and ε, the best first.

    Attributes
    ----------
    schema_version
        The version of this form.
    loss
        The loss: squared, absolute or poisson.
    labels
        The labels that were designed for.
    epsilon
        ε in nats that the mechanism gets.
    prior_epsilon
        ε in nats that the prior cost; 0 for a public one.
    total_epsilon
        Both together.
    prior
        The share of each label.
    best
        The place of the best candidate, from 0.
    best_unbiased
        The place of the best unbiased candidate, from 0.
    candidates
        The mechanisms, the best first.
    """

    schema_version: str = "1.0"
    loss: str
    labels: StoredGrid
    epsilon: Number
    prior_epsilon: Number
    total_epsilon: Number
    prior: list[float]
    best: int | None
    best_unbiased: int | None
    candidates: tuple[Scored, ...]

    def said(self, *, quiet: bool) -> Iterator[Said]:  # noqa: ARG002
        """Yield a table, the best first, and which mechanism to take."""
        title = f"Expected {self.loss} loss {UNITS[self.loss]} at ε = {number(self.epsilon)} nats"
        headers = ("mechanism", "ε", "loss", "max |bias|", "outputs", "seconds")
        yield title, headers, [design_row(scored) for scored in self.candidates]
        yield from ("", *sentences(self))

    def page(self) -> str:
        """Return the page."""
        from ldpaudit.commands.mechanism.pages import design_page

        return design_page(self)

    def chosen(self) -> tuple[Scored | None, Scored | None]:
        """Return the best candidate and the best unbiased one; None where there is none."""
        places = self.best, self.best_unbiased
        best, fair = (None if place is None else self.candidates[place] for place in places)
        return best, fair


def design(request: DesignRequest, progress: Progress) -> Design | Analysis:
    """Compare all mechanisms, or analyse the invariant channel (InputError: not valid options)."""
    if request.invariant:
        return _invariant(request)
    if request.labels is None or request.channel_out is not None:
        raise InputError(
            "Give the labels (--labels LO:HI:STEP); --channel-out belongs to --invariant."
        )
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
    """Analyse the channel that keeps the prior's shares, and most labels, at ε.

    InputError where there is no public prior, or it, the labels or ε are not valid.
    """
    import pandas as pd

    refuse(
        request.prior is None or request.private_epsilon is not None or request.data is not None,
        "--invariant needs a public prior (--prior FILE), and no private one.",
    )
    domain = read_domain(None, request.labels, request.prior, request)
    assert domain.classes is not None
    assert domain.prior is not None
    channel = invariant_channel(domain.classes, domain.prior, request.epsilon)
    if request.channel_out is not None:
        frame = pd.DataFrame(channel.matrix, channel.classes, channel.outputs)
        write_whole(request.channel_out, frame.to_csv(index_label="label"))
    return analyse(ExplicitChannel(channel), domain.prior, (_INVARIANT,))


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
    """Build every candidate and return them, the least expected loss first.

    What is proved to be optimal comes before what only rounding puts below it. InputError if the
    problem itself is not valid: ε, the prior, or labels below 0 under the Poisson loss.
    """
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


def design_row(scored: Scored) -> tuple[str, ...]:
    """Return a candidate as a row of texts."""
    bias = "–" if scored.max_bias is None else number(scored.max_bias)
    epsilon, loss, outputs = (
        "–" if value is None else number(round(value, _DECIMALS))
        for value in (scored.epsilon, scored.loss, scored.outputs)
    )
    bias = "unbiased" if scored.unbiased else bias
    return scored.title, epsilon, loss, bias, outputs, f"{scored.seconds:.3f}"


def sentences(design: Design) -> list[str]:
    """Return the best mechanism, the best unbiased one, the ε spent, and why some have no loss."""
    overall, fair = design.chosen()
    lines = [
        _praise("Best overall", overall, design) if overall else "No mechanism has a finite loss.",
        _praise("Best unbiased", fair, design) if fair else "No unbiased one has a finite loss.",
    ]
    if design.prior_epsilon:
        lines.append(
            f"Total ε = {number(design.total_epsilon)} nats: {number(design.prior_epsilon)} for "
            f"the private prior and {number(design.epsilon)} for the labels."
        )
        lines.append(
            "The losses are expected under that estimate, not under the true prior; every run "
            "draws a new estimate and spends its ε again."
        )
    titles: dict[str, list[str]] = {}  # Each reason once, after those that it holds for.
    for scored in design.candidates:
        if scored.reason:
            titles.setdefault(scored.reason, []).append(scored.title)
    return lines + [f"{', '.join(names)}: {reason}" for reason, names in titles.items()]


def _praise(what: str, scored: Scored, design: Design) -> str:
    loss = scored.cost
    also = f" (mean squared error {number(2 * loss)})" if design.loss == "squared" else ""
    proof = f"; optimal among {scored.optimal_among}" if scored.optimal_among else ""
    return f"{what}: {scored.title}, expected loss {number(loss)}{also}{proof}."
