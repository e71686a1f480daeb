"""The page of a design: tiles, figures and tables."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ldpaudit.commands.mechanism.designing import UNITS, Design, Scored, design_row, sentences
from ldpaudit.commands.mechanism.result import ERROR_AXES, Curve, error_points
from ldpaudit.mechanisms.analysis import delta_curve, privacy_of, rdp_curve
from ldpaudit.reports.charts.curves import line_figure
from ldpaudit.reports.charts.figure import Table, drawn
from ldpaudit.reports.charts.rows import Bar, bars_figure
from ldpaudit.reports.pages.page import Section, Tile, render_sheet
from ldpaudit.result.numbers import number

_HEADERS: Final = ("Mechanism", "ε (nats)", "Loss", "Largest bias", "Outputs", "Seconds")


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
