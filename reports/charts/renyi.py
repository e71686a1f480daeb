"""The Rényi curves: one picture over α of what was claimed, bounded and estimated."""

from collections.abc import Sequence
from typing import Final

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.curves import curve_figure, up_to
from ldpaudit.reports.charts.intervals import Figure
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import Curve

_DECLARED: Final = "mechanism.rdp"
MAIN: Final = (
    "renyi.release",
    "renyi.release.estimate",
    "renyi.synthetic",
    "renyi.double_rr_epsilon",
    "renyi.double_rr_floor",
    _DECLARED,
)
"""The lines of the first picture, in the order of their dashes."""


def renyi_figures(
    curves: Sequence[Curve], claimed: float | None, printer: Printer
) -> list[Figure | None]:
    """Return the charts: all orders, the parts behind them, and curves of other quantities."""
    divergences = {curve.id: curve for curve in curves if curve.axis == "divergence"}
    main = [divergences.pop(name) for name in MAIN if name in divergences]
    figures = []
    if main:
        title, rules = "Rényi divergence by order", _claimed(claimed, printer)
        figures.append(curve_figure(_same_orders(main), printer, title, rules))
    if divergences:
        title = "Rényi divergence: the parts behind it"
        figures.append(curve_figure(list(divergences.values()), printer, title))
    others = (curve for curve in curves if curve.axis != "divergence")
    return figures + [curve_figure([curve], printer, shown(curve.title)) for curve in others]


def _claimed(claimed: float | None, printer: Printer) -> list[charts.Rule]:
    if not claimed or claimed >= 1e300:
        return []
    return [charts.Rule(claimed, "", f"claimed ε = {printer.claim}", 3)]


def _same_orders(drawn: Sequence[Curve]) -> list[Curve]:
    """Return the curves with the exact one cut where the measured ones end."""
    measured = [curve.x[-1] for curve in drawn if curve.id != _DECLARED and curve.x]
    if not measured:
        return list(drawn)
    return [up_to(curve, max(measured)) for curve in drawn]
