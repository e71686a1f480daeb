"""The page of a design: candidates as bars, the best ones' privacy and error."""

import math
from collections.abc import Sequence
from typing import Final

from ldpaudit.commands.mechanism.describe.page import error_curves
from ldpaudit.commands.mechanism.design.result import Design, Scored
from ldpaudit.commands.mechanism.design.text import UNITS, design_row, sentences
from ldpaudit.mechanisms.analysis import delta_curve, privacy_of, rdp_curve
from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.charts.matrix import Bar
from ldpaudit.reports.charts.mechanism import Points, bars_figure, line_figure
from ldpaudit.reports.pages.page import Sheet, Tile, render_sheet
from ldpaudit.reports.parts.part import Part, drawn
from ldpaudit.reports.text.numbers import number

Curve = tuple[str, Points]
Drawing = tuple[str, str, tuple[str, str], Sequence[Curve]]
_HEADERS: Final = ("Mechanism", "ε (nats)", "Loss", "Largest bias", "Outputs", "Seconds")


def design_page(design: Design) -> str:
    """Return the page of a design."""
    problem, words = design.problem, sentences(design)
    unbiased = design.best_unbiased if design.best_unbiased is not design.best else None
    chosen = [scored for scored in (design.best, unbiased) if scored is not None]
    sheet = Sheet(
        what="Mechanism design",
        title=f"{problem.labels.steps + 1} labels, {problem.loss} loss, "
        f"ε = {number(problem.epsilon)}",
        lead=" ".join(words[:2]),
        tiles=_tiles(design),
        parts=(_losses(design, chosen), _privacy(chosen), _errors(chosen), _prior(design)),
        notes=tuple(words[2:]),
    )
    return render_sheet(sheet)


def _tiles(design: Design) -> tuple[Tile, ...]:
    tiles = [Tile("ε of the labels (nats)", number(design.problem.epsilon))]
    if design.prior_epsilon:
        tiles.append(Tile("ε₁ of the prior (nats)", number(design.prior_epsilon)))
        tiles.append(Tile("total ε (nats)", number(design.total_epsilon)))
    best = {"best loss": design.best, "best unbiased loss": design.best_unbiased}
    for what, scored in best.items():
        if scored is not None and scored.loss is not None:
            tiles.append(Tile(what, number(scored.loss), scored.title))
    return tuple(tiles)


def _losses(design: Design, chosen: list[Scored]) -> Part:
    loss = design.problem.loss
    bars = [
        Bar(s.title, "∞" if s.loss == math.inf else number(s.loss), s.loss, s in chosen)
        for s in design.candidates
        if s.loss is not None
    ]
    table = Table(_HEADERS, tuple(design_row(scored) for scored in design.candidates))
    title = f"Expected {loss} loss of every candidate"
    description = (
        f"Expected loss {UNITS[loss]} under the prior, exact, the least first; the best "
        "and the best unbiased candidate are drawn strong. A candidate without a mark has an "
        "infinite loss."
    )
    figure = bars_figure(("candidates", title, description), f"expected {loss} loss", bars, table)
    intro = (
        "Every mechanism gets the same ε. A biased one draws predictions towards the middle of "
        "the labels; an unbiased one keeps the best predictor what it was, at the price of noise."
    )
    return Part("losses", "Candidates", intro, (figure,))


def _privacy(chosen: list[Scored]) -> Part:
    deltas: list[Curve] = []
    orders: list[Curve] = []
    for scored in chosen:
        assert scored.mechanism is not None
        privacy = privacy_of(scored.mechanism)
        deltas.append((scored.title, delta_curve(privacy)))
        orders.append((scored.title, [p for p in rdp_curve(privacy) if math.isfinite(p[0])]))
    orders_title = "Rényi divergence by order of the best"
    curves = _lines(
        ("delta", "δ(ε) of the best", ("ε (nats)", "δ"), deltas),
        ("rdp", orders_title, ("order α", "nats"), orders),
    )
    intro = "Mechanisms of one ε can differ in what they give away at other δ and orders."
    return Part("privacy", "Privacy", intro, curves, missing="" if curves else "Nothing to draw.")


def _errors(chosen: list[Scored]) -> Part:
    curves = [(s.title, error_curves(s.errors)) for s in chosen if s.errors is not None]
    biases = [(title, bias) for title, (bias, _) in curves]
    spreads = [(title, spread) for title, (_, spread) in curves]
    axes = ("true label", "in units of the label")
    figures = _lines(
        ("bias", "Bias E[ŷ | y] − y", axes, biases),
        ("spread", "Standard deviation √Var[ŷ | y]", axes, spreads),
    )
    intro = "How far each label is off on average, and how much it is scattered."
    missing = "" if figures else "None."
    return Part("label-errors", "Error by label", intro, figures, missing=missing)


def _prior(design: Design) -> Part:
    points = list(
        zip(design.problem.labels.values.tolist(), design.problem.prior.tolist(), strict=True)
    )
    axes = ("true label", "probability")
    figure = line_figure("prior", "The prior", axes, [("prior", points)], "as given")
    intro = (
        f"Estimated from the data with ε₁ = {number(design.prior_epsilon)} nats of its own."
        if design.prior_epsilon
        else "Taken as public: it must not come from the labels that are to be released."
    )
    return Part("prior", "Prior", intro, drawn([figure]))


def _lines(*drawings: Drawing) -> tuple[Figure, ...]:
    """Return the figures of exact curves; those without a curve are left out."""
    return drawn([_line(*drawing) for drawing in drawings])


def _line(key: str, title: str, axes: tuple[str, str], curves: Sequence[Curve]) -> Figure | None:
    long = [curve for curve in curves if len(curve[1]) > 1]
    return line_figure(key, title, axes, long, "exact") if long else None
