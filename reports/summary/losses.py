"""Who loses most: the loss of the people in the release, by how many lose how much."""

import math
from collections.abc import Iterator
from typing import Final

from ldpaudit.reports.charts.curves import curve_figure
from ldpaudit.reports.charts.intervals import Figure
from ldpaudit.reports.parts.instance_loss import main_curve
from ldpaudit.reports.parts.part import Section, drawn
from ldpaudit.reports.summary.told import Told
from ldpaudit.reports.text.numbers import as_percent, fold, number
from ldpaudit.reports.text.wording import missing
from ldpaudit.result import Curve

SHARES: Final = (0.5, 0.1, 0.01)
"""Of the people, for whom the least loss is told."""
_MEANS: Final = (
    "instance_loss.mean_lower",
    "instance_loss.mean_lower_if_claim_holds",
    "instance_loss.features_mean",
    "instance_loss.label_mean",
)
_WHAT: Final = (
    "A person’s loss is how far features and released label together shift the odds of that "
    "person’s label, compared with knowing the shares of the labels only. It counts what the "
    "features tell as well, so it can be large although ε is small."
)


def losses_told(section: Section) -> Told:
    """Return how many people lose how much, in sentences and one picture."""
    curve = main_curve(section)
    figures = [] if curve is None else [_figure(section, curve)]
    sentences = [_WHAT] if section.plain or curve else []
    sentences += [] if curve is None else list(_people(curve))
    return Told(
        "lose",
        "Who loses most",
        tuple(sentences),
        drawn(figures),
        section.printer.quantities(filter(None, map(section.result.estimate, _MEANS))),
        missing="" if sentences else missing(section.result.audits, "instance-loss"),
        more="loss",
    )


def _figure(section: Section, curve: Curve) -> Figure | None:
    return curve_figure([curve], section.printer, "Share of people by the least that they lose")


def _people(curve: Curve) -> Iterator[str]:
    """Yield how much some people lose at least: the points of the curve next to a few shares."""
    points = [(x, j) for x, j in zip(curve.x, curve.value, strict=True) if x > 0 and j > 0]
    if not points:
        return
    near = [min(points, key=lambda p: abs(math.log(p[1] / share))) for share in SHARES]
    texts = [
        f"{as_percent(number(j))} of the people lose {number(x)} nats or more (the odds shift "
        f"{fold(x)})"
        for x, j in dict.fromkeys(near)
    ]
    yield f"By estimate, {'; '.join(texts)}."
