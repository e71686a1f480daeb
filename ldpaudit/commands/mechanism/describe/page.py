"""The page of an analysis: tiles, figures and tables."""

import math

from ldpaudit.commands.mechanism.describe.result import COLUMN_HEADERS, Analysis, Points
from ldpaudit.mechanisms.analysis import LabelErrors
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.charts.mechanism import channel_figure, line_figure
from ldpaudit.reports.pages.page import Sheet, Tile, render_sheet
from ldpaudit.reports.parts.part import Part, drawn
from ldpaudit.reports.text.numbers import exactly, fold


def mechanism_page(analysis: Analysis) -> str:
    """Return the page of one mechanism."""
    kind = "Every number here is exact: computed from the declaration alone, without data."
    if analysis.kind == "upper bound":
        kind = "ε, δ(ε) and the Rényi curve here are upper bounds: the truth is never above them."
    most = fold(analysis.epsilon, "up")
    shift = most if math.isinf(analysis.epsilon) else f"at most {most}"
    odds = f"What it releases shifts the odds between two true labels {shift}."
    parts = (
        _columns(analysis),
        _privacy(analysis),
        _channel(analysis.channel),
        _errors(analysis.errors),
    )
    sheet = Sheet(
        what="Mechanism",
        title=analysis.mechanism,
        lead=f"{analysis.description[:1].upper()}{analysis.description[1:]}. {odds} {kind}",
        tiles=tuple(
            Tile(name, exactly(value), remark)
            for name, value, remark in analysis.numbers()
            if not isinstance(value, str)
        ),
        parts=tuple(part for part in parts if part is not None),
        notes=analysis.notes,
    )
    return render_sheet(sheet)


def _privacy(analysis: Analysis) -> Part:
    figures: list[Figure | None] = []
    if analysis.delta:
        curve = [("δ(ε)", analysis.delta)]
        figures.append(line_figure("delta", "δ(ε)", ("ε (nats)", "δ"), curve, analysis.kind))
    if analysis.rdp:
        orders, points = ("order α", "nats"), [("D_α", _finite(analysis.rdp))]
        title = "Rényi divergence by order"
        if analysis.floor:
            points.append(("floor with features drawn from their label", list(analysis.floor)))
        figures.append(line_figure("rdp", title, orders, points, analysis.kind))
    curves = drawn(figures)
    return Part(
        "privacy",
        "Privacy",
        "δ(ε) is the least δ for which the mechanism is (ε, δ)-label-DP; it is 0 from its ε on. "
        "The Rényi divergence of order α between the outputs of two labels rises to ε as α grows.",
        curves,
        missing="" if curves else "The curves are flat, infinite or too large to compute.",
    )


def _finite(points: Points) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)] or [(1.0, 0.0)]


def _columns(analysis: Analysis) -> Part | None:
    if not analysis.columns:
        return None
    rows = [[exactly(value) for value in row] for row in analysis.column_rows()]
    intro = (
        "What each column gives away if the attacker knows the true labels of all others, and if "
        "only this released column is seen; the error is that of a rare label's estimated share."
    )
    table = Table(COLUMN_HEADERS, tuple(map(tuple, rows)))
    return Part("columns", "Columns", intro, tables=(("The columns", table),))


def _channel(channel: Channel | None) -> Part | None:
    if channel is None:
        return None
    labels, outputs = (
        [exactly(label) if isinstance(label, float) else str(label) for label in side]
        for side in (channel.classes, channel.outputs)
    )
    figure = channel_figure(labels, outputs, channel.matrix.tolist())
    intro = "How likely each output is under each true label."
    return Part("channel-matrix", "Channel", intro, (figure,))


def _errors(errors: LabelErrors | None) -> Part | None:
    if errors is None:
        return None
    bias, spread = error_curves(errors)
    figure = line_figure(
        "errors",
        "Bias and standard deviation by label",
        ("true label", "in units of the label"),
        [("standard deviation √Var[ŷ | y]", spread), ("bias E[ŷ | y] − y", bias)],
        "exact",
    )
    intro = (
        "The mechanism is unbiased: every label is released right on average."
        if errors.unbiased
        else "The mechanism is biased: some labels are released too high or too low on average."
    )
    return Part("label-errors", "Error by label", intro, drawn([figure]))


def error_curves(errors: LabelErrors) -> tuple[list[tuple[float, float]], ...]:
    """Return bias and standard deviation as points (label, value)."""
    labels = errors.labels.tolist()
    bias = (errors.bias * (not errors.unbiased)).tolist()
    spread = [math.sqrt(max(value, 0.0)) for value in errors.variance.tolist()]
    return list(zip(labels, bias, strict=True)), list(zip(labels, spread, strict=True))
