"""The pages of an analysis and of a design: tiles, figures and tables."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ldpaudit.commands.mechanism.analysis import COLUMN_HEADERS, Analysis, cell
from ldpaudit.commands.mechanism.designing import UNITS, Design, Scored, design_row, sentences
from ldpaudit.mechanisms.analysis import LabelErrors, delta_curve, privacy_of, rdp_curve
from ldpaudit.reports.charts.curves import Points, line_figure
from ldpaudit.reports.charts.figure import Figure, Table, drawn
from ldpaudit.reports.charts.planes import channel_figure
from ldpaudit.reports.charts.rows import Bar, bars_figure
from ldpaudit.reports.pages.page import Section, Tile, render_sheet
from ldpaudit.result.numbers import exactly, fold, number

Curve = tuple[str, Points]
_HEADERS: Final = ("Mechanism", "ε (nats)", "Loss", "Largest bias", "Outputs", "Seconds")
_ERROR_AXES: Final = ("true label", "in units of the label")


def mechanism_page(analysis: Analysis) -> str:
    """Return the page of one mechanism."""
    kind = "Every number here is exact: computed from the declaration alone, without data."
    if analysis.kind == "upper bound":
        kind = "ε, δ(ε) and the Rényi curve here are upper bounds: the truth is never above them."
    most = fold(analysis.epsilon, "up")
    shift = most if math.isinf(analysis.epsilon) else f"at most {most}"
    odds = f"What it releases shifts the odds between two true labels {shift}."
    return render_sheet(
        what="Mechanism",
        title=analysis.mechanism,
        lead=f"{analysis.description[:1].upper()}{analysis.description[1:]}. {odds} {kind}",
        tiles=tuple(
            Tile(name, exactly(value), remark)
            for name, value, remark in analysis.numbers()
            if not isinstance(value, str)
        ),
        sections=tuple(_sections(analysis)),
        notes=analysis.notes,
    )


def _sections(analysis: Analysis) -> Iterator[Section]:
    if analysis.columns:
        rows = tuple(tuple(map(exactly, row)) for row in analysis.column_rows())
        intro = (
            "What each column reveals if the attacker knows the true labels of all others, and if "
            "only this released column is seen; the error is that of a rare label's estimated "
            "share."
        )
        table = ("The columns", Table(COLUMN_HEADERS, rows))
        yield Section("columns", "Columns", (intro,), tables=(table,))
    figures: list[Figure | None] = []
    if analysis.delta:
        curve = [("δ(ε)", analysis.delta)]
        figures.append(line_figure("delta", "δ(ε)", ("ε (nats)", "δ"), curve, analysis.kind))
    if analysis.rdp:
        finite = [(x, y) for x, y in analysis.rdp if math.isfinite(x) and math.isfinite(y)]
        points: list[Curve] = [("D_α", finite or [(1.0, 0.0)])]
        if analysis.floor:
            points.append(("floor with features drawn from their label", list(analysis.floor)))
        title, orders = "Rényi divergence by order", ("order α", "nats")
        figures.append(line_figure("rdp", title, orders, points, analysis.kind))
    curves = drawn(figures)
    yield Section(
        "privacy",
        "Privacy",
        (
            "δ(ε) is the least δ for which the mechanism is (ε, δ)-label-DP; it is 0 from its ε "
            "on. The Rényi divergence of order α between the outputs of two labels rises to ε as α "
            "grows.",
        ),
        curves,
        missing="" if curves else "The curves are flat, infinite or too large to compute.",
    )
    if (channel := analysis.shown_channel) is not None:
        labels, outputs = ([*map(cell, side)] for side in (channel.labels, channel.outputs))
        intro = "How likely each output is under each true label."
        figure = channel_figure(labels, outputs, channel.matrix)
        yield Section("channel-matrix", "Channel", (intro,), (figure,))
    if (errors := analysis.errors) is not None:
        bias, spread = _error_points(errors)
        title = "Bias and standard deviation by label"
        named = [("standard deviation √Var[ŷ | y]", spread), ("bias E[ŷ | y] − y", bias)]
        plane = line_figure("errors", title, _ERROR_AXES, named, "exact")
        intro = (
            "The mechanism is unbiased: every label is released right on average."
            if errors.unbiased
            else "The mechanism is biased: some labels are released too high or too low on average."
        )
        yield Section("label-errors", "Error by label", (intro,), drawn([plane]))


def _error_points(errors: LabelErrors) -> tuple[list[tuple[float, float]], ...]:
    """Return bias and standard deviation as points (label, value)."""
    bias, spread = errors.bias * (not errors.unbiased), np.sqrt(np.maximum(errors.variance, 0.0))
    labels = errors.labels.tolist()
    return tuple(list(zip(labels, one.tolist(), strict=True)) for one in (bias, spread))


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
    errors = [(s.title, _error_points(s.errors)) for s in strong if s.errors is not None]
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
                ("bias", "Bias E[ŷ | y] − y", _ERROR_AXES, bias),
                ("spread", "Standard deviation √Var[ŷ | y]", _ERROR_AXES, spread),
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
