"""The instance-based loss: J(τ), the histogram, means and quantiles."""

from typing import Final

from ldpaudit.reports.charts.curves import curve_figure, histogram_figure
from ldpaudit.reports.parts.part import Part, Section, drawn
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import is_epsilon
from ldpaudit.reports.text.wording import missing

_MEANS: Final = ("instance_loss.mean_lower", "instance_loss.mean")


def loss_part(section: Section) -> Part:
    """Return the loss of the people in the release."""
    quantities = tuple(q for q in section.plain if not is_epsilon(q.estimate))
    means = [q for name in _MEANS for q in quantities if q.id == name]
    figures = [curve_figure([c], section.printer, shown(c.title)) for c in section.curves]
    figures += [histogram_figure(h, means, shown(h.title)) for h in section.histograms]
    known = quantities or section.curves
    return Part(
        "loss",
        "Instance-based loss",
        "ν is what the release, features and label together, reveals about one person's true "
        "label: how far it moves the log-odds, in nats, from the overall shares of the labels. It "
        "includes what the features alone reveal, so it can be large although ε is small. J(τ) is "
        "the share of people who lose τ nats or more.",
        drawn(figures),
        quantities,
        missing="" if known else missing(section.result.audits, "instance-loss"),
    )
