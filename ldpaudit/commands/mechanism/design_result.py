"""A design: the candidates, what is said of them, and the page."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from pydantic import ConfigDict, Field

from ldpaudit.commands.mechanism.result import ERROR_AXES, Curve, error_points
from ldpaudit.commands.shell import Said, Stored
from ldpaudit.mechanisms.analysis import LabelErrors, delta_curve, privacy_of, rdp_curve
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.reports.charts.curves import line_figure
from ldpaudit.reports.charts.figure import Table, drawn
from ldpaudit.reports.charts.rows import Bar, bars_figure
from ldpaudit.reports.pages.page import Section, Tile, render_sheet
from ldpaudit.result import Frozen, Number
from ldpaudit.result.numbers import number

_HEADERS: Final = ("Mechanism", "ε (nats)", "Loss", "Largest bias", "Outputs", "Seconds")


# Beyond which the numbers of a linear program are noise.
_DECIMALS: Final = 9
UNITS: Final = {"squared": "½(ŷ − y)²", "absolute": "|ŷ − y|", "poisson": "ŷ − y log ŷ"}


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
        return design_page(self)

    def chosen(self) -> tuple[Scored | None, Scored | None]:
        """Return the best candidate and the best unbiased one; None where there is none."""
        places = self.best, self.best_unbiased
        best, fair = (None if place is None else self.candidates[place] for place in places)
        return best, fair


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


def design_page(design: Design) -> str:
    """Return the page of a design."""
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
    table = Table(_HEADERS, tuple(design_row(scored) for scored in design.candidates))
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
