"""The page of a design: candidates as bars, the best ones' privacy and error."""

import math
from typing import Final

import numpy as np

from ldpaudit.commands.mechanism.comparison import Design, Scored, best
from ldpaudit.commands.mechanism.design_text import UNITS, design_row, sentences
from ldpaudit.mechanisms.analysis import delta_curve, privacy_of, rdp_curve
from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.charts.matrix import Bar
from ldpaudit.reports.charts.mechanism import bars_figure, line_figure
from ldpaudit.reports.pages.page import Sheet, Tile, render_sheet
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.numbers import number

Curve = tuple[str, list[tuple[float, float]]]
_HEADERS: Final = ("Mechanism", "ε (nats)", "Loss", "Largest bias", "Outputs", "Seconds")


def design_page(found: Design) -> str:
    """Return the page of a design."""
    problem, words = found.problem, sentences(found)
    chosen = _chosen(found)
    k = problem.labels.steps + 1
    sheet = Sheet(
        what="Mechanism design",
        title=f"{k} labels, {problem.loss} loss, ε = {number(problem.epsilon)}",
        lead=" ".join(words[:2]),
        tiles=_tiles(found),
        parts=(_losses(found), _privacy(chosen), _errors(chosen), _prior(found)),
        notes=tuple(words[2:]),
    )
    return render_sheet(sheet)


def _chosen(found: Design) -> list[Scored]:
    """Return the best candidate and the best unbiased one, once each."""
    over, fair = best(found.candidates), best(found.candidates, unbiased=True)
    return [s for s in (over, fair if fair is not over else None) if s is not None]


def _tiles(found: Design) -> tuple[Tile, ...]:
    tiles = [Tile("ε of the labels (nats)", number(found.problem.epsilon))]
    if found.prior_epsilon:
        tiles.append(Tile("ε₁ of the prior (nats)", number(found.prior_epsilon)))
        tiles.append(Tile("total ε (nats)", number(found.total_epsilon)))
    for what, unbiased in (("best loss", False), ("best unbiased loss", True)):
        scored = best(found.candidates, unbiased=unbiased)
        if scored is not None and scored.loss is not None:
            tiles.append(Tile(what, number(scored.loss), scored.title))
    return tuple(tiles)


def _losses(found: Design) -> Part:
    problem = found.problem
    rows = [
        Bar(
            s.title,
            "∞" if s.loss == math.inf else number(s.loss or 0.0),
            s.loss or 0.0,
            s in best_two,
        )
        for best_two in [_chosen(found)]
        for s in found.candidates
        if s.loss is not None
    ]
    table = Table(_HEADERS, tuple(design_row(scored) for scored in found.candidates))
    title = f"Expected {problem.loss} loss of every candidate"
    description = (
        f"Expected loss {UNITS[problem.loss]} under the prior, exact, the least first; the best "
        "and the best unbiased candidate are drawn strong. A candidate without a bar has an "
        "infinite loss; a bar with a gap near its end is cut, at six times the median."
    )
    figure = bars_figure("candidates", title, description, rows, table)
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
        deltas.append((scored.title, list(delta_curve(privacy))))
        orders.append((scored.title, [p for p in rdp_curve(privacy) if math.isfinite(p[0])]))
    figures = [
        line_figure(key, title, axes, [c for c in curves if len(c[1]) > 1], "exact")
        for key, title, axes, curves in (
            ("delta", "δ(ε) of the best", ("ε (nats)", "δ"), deltas),
            ("rdp", "Rényi divergence by order of the best", ("order α", "nats"), orders),
        )
        if any(len(points) > 1 for _, points in curves)
    ]
    drawn = _drawn(figures)
    intro = "Mechanisms of one ε can differ in what they give away at other δ and orders."
    return Part("privacy", "Privacy", intro, drawn, missing="" if drawn else "Nothing to draw.")


def _errors(chosen: list[Scored]) -> Part:
    biases: list[Curve] = []
    spreads: list[Curve] = []
    for scored in chosen:
        errors = scored.errors
        if errors is None:
            continue
        labels = errors.labels.tolist()
        bias = (errors.bias * (not errors.unbiased)).tolist()
        spread = np.sqrt(np.maximum(errors.variance, 0)).tolist()
        biases.append((scored.title, list(zip(labels, bias, strict=True))))
        spreads.append((scored.title, list(zip(labels, spread, strict=True))))
    unit = "in units of the label"
    figures = [
        line_figure(key, title, ("true label", unit), curves, "exact")
        for key, title, curves in (
            ("bias", "Bias E[ŷ | y] − y", biases),
            ("spread", "Standard deviation √Var[ŷ | y]", spreads),
        )
        if curves
    ]
    drawn = _drawn(figures)
    intro = "How far each label is off on average, and how much it is scattered."
    return Part("label-errors", "Error by label", intro, drawn, missing="" if drawn else "None.")


def _prior(found: Design) -> Part:
    labels, prior = found.problem.labels.values.tolist(), found.problem.prior.tolist()
    points = list(zip(labels, prior, strict=True))
    figure = line_figure(
        "prior", "The prior", ("true label", "probability"), [("prior", points)], "as given"
    )
    intro = (
        f"Estimated from the data with ε₁ = {number(found.prior_epsilon)} nats of its own."
        if found.prior_epsilon
        else "Taken as public: it must not come from the labels that are to be released."
    )
    return Part("prior", "Prior", intro, _drawn([figure]))


def _drawn(figures: list[Figure | None]) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if figure is not None)
