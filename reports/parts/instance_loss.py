"""The instance-based loss: every curve and histogram, means and quantiles."""

from typing import Final

from ldpaudit.reports.charts.curves import curve_figure, histogram_figure
from ldpaudit.reports.parts.part import Part, Section, drawn
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import is_epsilon
from ldpaudit.result import Curve

_MEANS: Final = ("instance_loss.mean_lower", "instance_loss.mean")
_CURVES: Final = {
    "instance_loss.exceedance": "instance_loss.mean",
    "instance_loss.exceedance_learned": "instance_loss.mean_learned",
}
"""Curves of J(τ), each with the mean of its estimate."""


def loss_part(section: Section) -> Part:
    """Return the loss of the people in the release, but for the curve that the summary draws."""
    quantities = tuple(q for q in section.plain if not is_epsilon(q.estimate))
    means = [q for name in _MEANS for q in quantities if q.id == name]
    curves = [curve for curve in section.curves if curve is not main_curve(section)]
    figures = [curve_figure([c], section.printer, shown(c.title)) for c in curves]
    figures += [histogram_figure(h, means, shown(h.title)) for h in section.histograms]
    return Part(
        "loss",
        "Instance-based loss",
        "ν is what the release, features and label together, reveals about one person's true "
        "label: how far it moves the log-odds, in nats, from the overall shares of the labels. It "
        "includes what the features alone reveal, so it can be large although ε is small. J(τ) is "
        "the share of people who lose τ nats or more.",
        drawn(figures),
        quantities,
    )


def main_curve(section: Section) -> Curve | None:
    """Return J(τ): of its estimates the one with the larger mean, as each tends to be too low."""
    result = section.result
    found = [(result.estimate(m), result.curve(c)) for c, m in _CURVES.items()]
    curves = [(mean.value if mean else 0.0, curve) for mean, curve in found if curve]
    return max(curves, key=lambda pair: pair[0])[1] if curves else None
