"""``design``: all mechanisms compared for a prior, a loss and ε, the best first; and the page."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import NUMBERS, check_complete, is_any
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.doors import (
    FloatArray,
    Frozen,
    InputError,
    Mechanism,
    NoProgress,
    Progress,
    Said,
    check_epsilon,
    number,
    refuse,
)
from ldpaudit.extras.choose.lines import line_figure
from ldpaudit.extras.choose.mechanism.analysis import (
    MOST_LABELS,
    analyse,
    expected_loss,
    grid,
    read_domain,
)
from ldpaudit.extras.choose.mechanism.invariant import invariant_channel
from ldpaudit.extras.choose.mechanism.request import DesignRequest
from ldpaudit.extras.choose.mechanism.result import ERROR_AXES, Analysis, Curve, error_points
from ldpaudit.extras.choose.sheet import Paged, render_sheet
from ldpaudit.extras.probe.bars import Bar, bars_figure
from ldpaudit.extras.release.priors import prior_over, read_prior
from ldpaudit.mechanisms.analysis import (
    LabelErrors,
    delta_curve,
    label_errors,
    privacy_of,
    rdp_curve,
)
from ldpaudit.mechanisms.interface import Problem, Proposal
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.mechanisms.prior_budget import check_prior_budget, private_prior
from ldpaudit.mechanisms.registry import candidates
from ldpaudit.mechanisms.response import ExplicitChannel
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.reports.charts.figure import Table, drawn
from ldpaudit.reports.pages.page import Section, Tile
from ldpaudit.result import Number

_HEADERS: Final = ("Mechanism", "ε (nats)", "Loss", "Largest bias", "Outputs", "Seconds")


# Beyond which the numbers of a linear program are noise.
_DECIMALS: Final = 9
UNITS: Final = {"squared": "½(ŷ − y)²", "absolute": "|ŷ − y|", "poisson": "ŷ − y log ŷ"}
# How much smaller, relatively, another loss may be than one that is proved to be the least.
_ROUNDING: Final = 1e-9
_INVARIANT: Final = (
    "Released labels have the prior's shares, so counts need no correction where the prior is "
    "right; it must be public: not come from the labels that are to be released."
)


class StoredGrid(Frozen):
    """The labels: numbers at equal steps."""

    low: Number = Field(description="The smallest label.")
    high: Number = Field(description="The largest label.")
    step: Number = Field(description="The distance of neighbouring labels.")
    count: int = Field(description="How many labels there are.")


class Scored(Frozen):
    """A mechanism that was compared, and what it costs."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    mechanism: str = Field(description="Its name.")
    variant: str = Field(description="Which of its forms; empty where it has one only.")
    epsilon: Number | None = Field(
        None,
        description="Its exact ε in nats, never above the one asked for; null where it could not "
        "be built.",
    )
    loss: Number | None = Field(
        None, description="Its expected loss under the prior; null where it is not defined."
    )
    max_bias: Number | None = Field(
        None,
        description="How far the released label is off on average, for the label where that is "
        "most.",
    )
    unbiased: bool = Field(
        False, description="Whether the released label is right on average, whatever the label."
    )
    outputs: Number | None = Field(None, description="How many outputs it has.")
    seconds: float = Field(description="What building and scoring it took.")
    optimal: bool = Field(
        False, description="Whether it is proved to be the best of some kind of mechanism."
    )
    optimal_among: str | None = Field(None, description="Of which kind.")
    reason: str | None = Field(None, description="Why its loss is infinite or not defined.")
    declaration: dict[str, Any] | None = Field(
        None, description="What a release that was made with it declares."
    )
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


class Design(Paged):
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
        yield title, headers, [_row(scored) for scored in self.candidates]
        yield from ("", *sentences(self))

    @property
    def _sentence(self) -> str:
        return " ".join(sentences(self))

    def to_frame(self) -> Any:
        """Return its single numbers, in one row of a data frame."""
        import pandas as pd

        single = {k: v for k, v in self.stored().items() if isinstance(v, int | float | str)}
        return pd.DataFrame([single])

    def page(self) -> str:
        """Return the page."""
        return _page(self)

    def chosen(self) -> tuple[Scored | None, Scored | None]:
        """Return the best candidate and the best unbiased one; None where there is none."""
        places = self.best, self.best_unbiased
        best, fair = (None if place is None else self.candidates[place] for place in places)
        return best, fair


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


def _row(scored: Scored) -> tuple[str, ...]:
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


def _page(design: Design) -> str:
    words, (best, fair) = sentences(design), design.chosen()
    chosen = [one for one in dict.fromkeys((design.best, design.best_unbiased)) if one is not None]
    strong = [design.candidates[place] for place in chosen]
    spent, labels = number(design.prior_epsilon), design.labels
    tiles = [Tile("ε of the labels (nats)", number(design.epsilon))]
    if design.prior_epsilon:
        tiles.append(Tile("ε₁ of the prior (nats)", spent))
        tiles.append(Tile("total ε (nats)", number(design.total_epsilon)))
    for what, scored in (("best loss", best), ("best unbiased loss", fair)):
        if scored is not None and scored.loss is not None:
            tiles.append(Tile(what, number(scored.loss), scored.title))
    analysed = [(s.title, privacy_of(s.made)) for s in strong if s.made is not None]
    deltas = [(title, delta_curve(one)) for title, one in analysed]
    orders = [
        (title, [point for point in rdp_curve(one) if math.isfinite(point[0])])
        for title, one in analysed
    ]
    errors = [(s.title, error_points(s.errors)) for s in strong if s.errors is not None]
    bias, spread = ([(title, one[place]) for title, one in errors] for place in (0, 1))
    grid = (labels.low + labels.step * np.arange(labels.count)).tolist()
    points = list(zip(grid, design.prior, strict=True))
    source = (
        f"Estimated from the data with ε₁ = {spent} nats of its own."
        if design.prior_epsilon
        else "Taken as public: it must not come from the labels that are to be released."
    )
    return render_sheet(
        what="Mechanism design",
        title=f"{labels.count} labels, {design.loss} loss, ε = {number(design.epsilon)}",
        lead=" ".join(words[:2]),
        tiles=tuple(tiles),
        sections=(
            _losses(design, strong),
            _curves(
                *("privacy", "Privacy", "Nothing to draw."),
                "Mechanisms of one ε can differ in what they reveal at other δ and orders.",
                ("delta", "δ(ε) of the best", ("ε (nats)", "δ"), deltas),
                ("rdp", "Rényi divergence by order of the best", ("order α", "nats"), orders),
            ),
            _curves(
                *("label-errors", "Error by label", "None."),
                "How far each label is off on average, and how much it is scattered.",
                ("bias", "Bias E[ŷ | y] − y", ERROR_AXES, bias),
                ("spread", "Standard deviation √Var[ŷ | y]", ERROR_AXES, spread),
            ),
            _curves(
                *("prior", "Prior", "", source),
                ("prior", "The prior", ("true label", "probability"), [("prior", points)]),
                kind="as given",
            ),
        ),
        notes=tuple(words[2:]),
    )


def _losses(design: Design, strong: Sequence[Scored]) -> Section:
    bars = [
        Bar(s.title, number(s.loss), s.loss, any(s is one for one in strong))
        for s in design.candidates
        if s.loss is not None
    ]
    table = Table(_HEADERS, tuple(_row(scored) for scored in design.candidates))
    description = (
        f"Expected loss {UNITS[design.loss]} under the prior, exact, the least first; the best "
        "and the best unbiased candidate are drawn strong. A candidate without a mark has an "
        "infinite loss."
    )
    words = ("candidates", f"Expected {design.loss} loss of every candidate", description)
    figure = bars_figure(words, f"expected {design.loss} loss", bars, table)
    intro = (
        "Every mechanism gets the same ε. A biased one draws predictions towards the middle of "
        "the labels; an unbiased one keeps the best predictor what it was, at the price of noise."
    )
    return Section("losses", "Candidates", (intro,), (figure,))


def _curves(
    key: str,
    title: str,
    missing: str,
    intro: str,
    *drawings: tuple[str, str, tuple[str, str], Sequence[Curve]],
    kind: str = "exact",
) -> Section:
    """Return a section of pictures of curves; those without a curve are left out."""
    figures = []
    for name, heading, axes, curves in drawings:
        long = [curve for curve in curves if len(curve[1]) > 1]
        figures.append(line_figure(name, heading, axes, long, kind) if long else None)
    shown = drawn(figures)
    return Section(key, title, (intro,), shown, missing="" if shown else missing)


def numeric_column(
    source: str | os.PathLike[str], name: str, files: FileOptions = AS_FOUND
) -> FloatArray:
    """Read one column of n numbers, float64 of shape (n,), without a missing one (InputError)."""
    table = open_table(source, files)
    if name not in table.names:
        raise missing_column(name, "label", table.names)
    column = next(table.columns([name]))[1]
    if not is_any(column.type, *NUMBERS):
        raise InputError(f"The column {quoted(name)} must hold numbers.")
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    check_complete(int(np.isnan(values).sum()), len(values), "a label")
    return values
