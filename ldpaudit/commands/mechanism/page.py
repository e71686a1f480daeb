"""The pages: an analysis as tiles, figures and tables."""

import math
from typing import TYPE_CHECKING, Final

from ldpaudit.commands.mechanism.analysis import Analysis
from ldpaudit.mechanisms.analysis import LabelErrors
from ldpaudit.reports.charts.intervals import Figure
from ldpaudit.reports.charts.mechanism import channel_figure, line_figure
from ldpaudit.reports.pages.page import Sheet, Tile, render_sheet
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.numbers import number

if TYPE_CHECKING:
    from ldpaudit.mechanisms.channel import Channel

_TILES: Final = {
    "epsilon": "ε (nats)",
    "lambda": "λ",
    "scale": "scale of the noise",
    "gamma": "γ",
    "width": "r (steps)",
    "floor": "floor",
    "sigma": "σ of the features",
    "radius": "radius of the features",
}
_LOSS: Final = {"squared": "squared loss", "absolute": "absolute loss", "poisson": "Poisson loss"}


def mechanism_page(analysis: Analysis) -> str:
    """Return the page of one mechanism."""
    kind = "Every number here is exact: computed from the declaration alone, without data."
    if analysis.kind == "upper bound":
        kind = "ε, δ(ε) and the Rényi curve here are upper bounds: the truth is never above them."
    parts = [privacy_part(analysis)]
    errors = error_part(analysis.errors)
    channel = channel_part(analysis.channel)
    sheet = Sheet(
        what="Mechanism",
        title=analysis.mechanism,
        lead=f"{analysis.description[:1].upper()}{analysis.description[1:]}. {kind}",
        tiles=_tiles(analysis),
        parts=tuple(part for part in (*parts, channel, errors) if part is not None),
        notes=analysis.notes,
    )
    return render_sheet(sheet)


def _tiles(analysis: Analysis) -> tuple[Tile, ...]:
    found = [
        Tile(_TILES.get(key, key), number(value), analysis.kind if key == "epsilon" else "")
        for key, value in analysis.parametrisations.items()
    ]
    if analysis.delta:
        found.append(
            Tile("total variation", number(analysis.total_variation), f"δ(0), {analysis.kind}")
        )
    for name, value in (analysis.loss or {}).items():
        if not isinstance(value, str):
            found.append(Tile(_LOSS[name], number(value), "expected, under the prior"))
    if analysis.accuracy is not None:
        found.append(Tile("P(released = true)", number(analysis.accuracy), "under the prior"))
    if analysis.errors is not None:
        bias = analysis.errors.largest_bias
        found.append(Tile("largest bias", number(bias), "" if bias else "unbiased"))
    return tuple(found)


def privacy_part(analysis: Analysis) -> Part:
    """Return the part with δ(ε) and the Rényi curve."""
    figures: list[Figure | None] = []
    if analysis.delta:
        figures.append(
            line_figure(
                "delta", "δ(ε)", ("ε (nats)", "δ"), [("δ(ε)", analysis.delta)], analysis.kind
            )
        )
    if analysis.rdp:
        figures.append(
            line_figure(
                "rdp",
                "Rényi divergence by order",
                ("order α", "nats"),
                [("D_α", _finite(analysis.rdp))],
                analysis.kind,
            )
        )
    drawn = tuple(figure for figure in figures if figure is not None)
    return Part(
        "privacy",
        "Privacy",
        "δ(ε) is the least δ for which the mechanism is (ε, δ)-label-DP; it is 0 from its ε on. "
        "The Rényi divergence of order α between the outputs of two labels rises to ε as α grows.",
        drawn,
        missing="" if drawn else "The curves are flat, infinite or too large to compute.",
    )


def _finite(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)] or [(1.0, 0.0)]


def channel_part(channel: "Channel | None") -> Part | None:
    """Return the part with the channel as a heat map; None where there is none to show."""
    if channel is None:
        return None
    figure = channel_figure(
        [_text(label) for label in channel.classes],
        [_text(output) for output in channel.outputs],
        channel.matrix.tolist(),
    )
    intro = "How likely each output is under each true label."
    return Part("channel-matrix", "Channel", intro, (figure,))


def _text(label: object) -> str:
    return number(label) if isinstance(label, float) else str(label)


def error_part(errors: LabelErrors | None) -> Part | None:
    """Return the part with bias and standard deviation by label; None where there are none."""
    if errors is None:
        return None
    labels = errors.labels.tolist()
    bias = (errors.bias * (not errors.unbiased)).tolist()
    spread = [math.sqrt(max(value, 0.0)) for value in errors.variance.tolist()]
    figure = line_figure(
        "errors",
        "Bias and standard deviation by label",
        ("true label", "in units of the label"),
        [
            ("standard deviation √Var[ŷ | y]", list(zip(labels, spread, strict=True))),
            ("bias E[ŷ | y] − y", list(zip(labels, bias, strict=True))),
        ],
        "exact",
    )
    intro = (
        "The mechanism is unbiased: every label is released right on average."
        if errors.unbiased
        else "The mechanism is biased: some labels are released too high or too low on average."
    )
    return Part("label-errors", "Error by label", intro, () if figure is None else (figure,))
