"""What ``describe``, ``channel`` and ``compose`` print."""

from typing import Any, Final

from ldpaudit.commands.mechanism.describe.result import COLUMN_HEADERS, Analysis, Points
from ldpaudit.mechanisms.analysis import LabelErrors
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.reports.text.numbers import exactly
from ldpaudit.terminal import say, show

_FEW: Final = 12
_ROW: Final = 60
"""Characters of outputs' names that stand beside each other."""


def print_analysis(analysis: Analysis, *, quiet: bool) -> None:
    """Print an analysis as tables; in one line when ``quiet``."""
    say(f"{analysis.mechanism}: {analysis.description} ({analysis.kind})")
    if quiet:
        return
    rows = [
        (
            f"{name}, {remark}" if remark else name,
            value if isinstance(value, str) else exactly(value),
        )
        for name, value, remark in analysis.numbers()
    ]
    show("Privacy", ("parameter", "value"), rows)
    if analysis.columns:
        shown = [tuple(map(_label, row)) for row in analysis.column_rows()]
        show("Columns", COLUMN_HEADERS, shown)
    _print_curve("δ(ε)", ("ε (nats)", "δ"), analysis.delta)
    _print_curve("Rényi divergence", ("order α", "nats"), analysis.rdp)
    _print_curve("Floor with features drawn from their label", ("order α", "nats"), analysis.floor)
    _print_errors(analysis.errors)
    _print_channel(analysis.channel)
    for note in analysis.notes:
        say(f"\nNote: {note}")


def _print_curve(title: str, headers: tuple[str, str], points: Points) -> None:
    if points:
        shown = points[:: max(1, -(-len(points) // _FEW))]
        shown = shown if shown[-1] == points[-1] else (*shown, points[-1])
        show(title, headers, [(exactly(x), exactly(y)) for x, y in shown])


def _print_errors(errors: LabelErrors | None) -> None:
    if errors is None:
        return
    k = len(errors.labels)
    places = sorted({round(i * (k - 1) / (min(k, _FEW) - 1 or 1)) for i in range(min(k, _FEW))})
    bias = 0 * errors.bias if errors.unbiased else errors.bias
    columns = (errors.labels, bias, errors.variance)
    rows = [tuple(exactly(float(column[i])) for column in columns) for i in places]
    title = "Error by label" if k <= _FEW else f"Error by label ({len(rows)} of {k})"
    show(title, ("label", "bias", "variance"), rows)


def _print_channel(channel: Channel | None) -> None:
    if channel is None or max(channel.matrix.shape) > _FEW:
        return
    labels, outputs = ([*map(_label, side)] for side in (channel.classes, channel.outputs))
    cells = [[f"{p:.6f}" for p in row] for row in channel.matrix]
    if sum(map(len, outputs)) <= _ROW:
        rows = [(label, *row) for label, row in zip(labels, cells, strict=True)]
        show("Channel", ("P(output | label)", *outputs), rows)
        return
    columns = zip(*cells, strict=True)
    rows = [(output, *column) for output, column in zip(outputs, columns, strict=True)]
    show("Channel: P(output | label)", ("output", *labels), rows)


def _label(label: Any) -> str:
    return str(label) if isinstance(label, bool | str | int) else exactly(float(label))
