"""The parts of a comparison's page that hold numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.comparison import (
    MOST_LINES,
    NamedCurve,
    group_table,
    overlay_figure,
)
from ldpaudit.reports.charts.curves import up_to
from ldpaudit.reports.charts.intervals import Figure, Table, group_figure, interval_figure
from ldpaudit.reports.pages.comparison_numeric import numeric_attacks_part
from ldpaudit.reports.pages.comparison_tables import (
    TESTS,
    Pair,
    differences_part,
    groups_of,
    pairs_of,
    row_title,
    section_scores,
)
from ldpaudit.reports.parts.label_inference import REFERENCES
from ldpaudit.reports.parts.part import Part, drawn
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.reports.text.wording import missing
from ldpaudit.result import Estimate
from ldpaudit.result.comparison import Comparison

_RENYI: Final = (
    "renyi.release",
    "renyi.release.estimate",
    "renyi.double_rr_epsilon",
    "mechanism.rdp",
)
_LOSS: Final = "instance_loss.exceedance"
_FIRST: Final = (
    (
        *("attack.best.accuracy", "attack.features-only.accuracy"),
        *("What the strongest attack guesses right, and what the features alone tell", "accuracy"),
    ),
    (
        *("numeric.best.mse", "numeric.features-only.mse"),
        "How far the strongest guess is off, and one from the features alone",
        "mean squared error",
    ),
)
_MOST_ROWS: Final = 10
"""Rows of a picture of attacks: with the names of files it fits on a printed page."""
_NO_TEST: Final = "Not measured: no test rows with true labels were given (--test)."


def comparison_parts(comparison: Comparison) -> tuple[Part, ...]:
    """Return the parts in the order of the page."""
    pairs = pairs_of(comparison)
    return (
        numeric_attacks_part(pairs) or _attacks(pairs),
        _losses(pairs),
        _renyi(pairs),
        _utility(pairs),
        differences_part(comparison),
    )


def first_figures(pairs: Sequence[Pair]) -> tuple[Figure, ...]:
    """Return the picture of the first screen: the strongest attack beside the features alone."""
    for best, alone, title, axis in _FIRST:
        groups = groups_of(pairs, (best, alone), row_title)
        if groups and groups[0][1][0][1].id == best:
            return (group_figure(("first", title, axis), groups, group_table(groups)),)
    return ()


def _attacks(pairs: Sequence[Pair]) -> Part:
    every = section_scores(pairs, "label-inference").items()
    best = {i: both for i, both in every if both[0].measure == "accuracy" and not both[0].group}
    order = sorted(best, key=lambda i: (best[i][0].subject != "best", -best[i][1]))
    attacks = [i for i in order if best[i][0].subject not in REFERENCES]
    references = [i for i in order if i not in attacks]
    groups = groups_of(pairs, attacks, row_title)
    table = group_table(groups_of(pairs, [*attacks, *references], row_title), "Attack")
    title = "Accuracy of each attack, with its interval"
    figures: tuple[Figure, ...] = ()
    if groups:
        titles, most = ("attacks", title, "accuracy"), max(1, _MOST_ROWS // len(pairs))
        figures = (group_figure(titles, groups[:most], group_table(groups), _rules(pairs)),)
    return Part(
        "attacks",
        "Attacks side by side",
        "An attack guesses every person's true label. The strongest attack may differ from release "
        "to release. Vertical lines show what an attacker without the released labels achieves: "
        "the majority guess, and a guess from the released features. Synthetic features make that "
        "guess worse too, so the advantage over it may rise while the accuracy falls. The "
        "advantage is what the released labels add.",
        figures,
        tables=(("Every attack on every release", table), *_by_group(pairs)) if groups else (),
        missing="" if groups else missing(pairs[0][1].audits, "label-inference"),
    )


def _by_group(pairs: Sequence[Pair]) -> tuple[tuple[str, Table], ...]:
    """Return the strongest attack's scores by class and slice, where there are any."""
    scores = section_scores(pairs, "label-inference").items()
    groups = groups_of(pairs, (i for i, (score, _) in scores if score.group), _score_of_group)
    if not groups:
        return ()
    return (("The strongest attack by class and slice", group_table(groups, "Rows")),)


def _score_of_group(estimate: Estimate) -> str:
    return shown(estimate.score.title if estimate.score else estimate.title, 80)


def _rules(pairs: Sequence[Pair]) -> list[charts.Rule]:
    rules = []
    if (prior := pairs[0][1].estimate("attack.prior.accuracy")) is not None:
        text = Printer(pairs[0][1]).quantity(prior).text
        rules.append(charts.Rule(prior.value, "majority", f"majority guess: {text}", 1))
    dashes: tuple[charts.Dash, ...] = (2, 3)
    for (release, result), dash in zip(pairs[:2], dashes, strict=False):
        if (alone := result.estimate("attack.features-only.accuracy")) is not None:
            legend = f"features alone, {release}: {Printer(result).quantity(alone).text}"
            rules.append(charts.Rule(alone.value, f"features, {release}", legend, dash))
    return rules


def _curves(pairs: Sequence[Pair], identifier: str) -> list[NamedCurve]:
    return [
        NamedCurve(release, result, curve)
        for release, result in pairs
        if (curve := result.curve(identifier)) is not None and curve.x
    ]


def _losses(pairs: Sequence[Pair]) -> Part:
    curves = _curves(pairs, _LOSS)
    title = shown(curves[0].curve.title) if curves else ""
    figure = overlay_figure("loss", title, curves, "share of people") if curves else None
    ids = ("instance_loss.mean_lower", "instance_loss.mean")
    table = group_table(groups_of(pairs, ids), "Number")
    return Part(
        "loss",
        "Instance-based loss",
        "ν is what features and label together reveal about one person's true label, in nats. A "
        "lower curve leaves fewer people with a large loss. The table has the curves' lower ends.",
        drawn([figure]),
        tables=(("Mean loss", table),) if table.rows else (),
        missing="" if figure else missing(pairs[0][1].audits, "instance-loss"),
    )


def _renyi(pairs: Sequence[Pair]) -> Part:
    by_id = [_curves(pairs, identifier) for identifier in _RENYI]
    measured = [max(c.curve.x) for curves in by_id[:3] for c in curves]
    if measured:
        order = max(measured)
        by_id[-1] = [replace(each, curve=up_to(each.curve, order)) for each in by_id[-1]]
    every = [each for curves in by_id for each in curves]
    title = "Rényi divergence by order"
    figures: list[Figure | None]
    if len(every) <= MOST_LINES:
        figures = [overlay_figure("renyi", title, every, "nats")] if every else []
    else:
        figures = [
            overlay_figure(f"renyi-{i}", shown(curves[0].curve.title), curves, "nats")
            for i, curves in enumerate(by_id)
            if curves
        ]
    return Part(
        "renyi",
        "Rényi curves",
        "The Rényi divergence of order α measures how far apart the outputs for two true labels "
        "can be. An exact curve follows from the declaration alone, a certified one is a lower "
        "bound, and an estimated one rests on the assumptions listed for it. Compare only curves "
        "of the same kind.",
        drawn(figures),
        missing="" if any(figures) else missing(pairs[0][1].audits, "renyi"),
    )


def _utility(pairs: Sequence[Pair]) -> Part:
    groups = groups_of(pairs, TESTS)
    figures = tuple(_scored(i, *group) for i, group in enumerate(groups))
    methods = [
        (release, shown(estimate.method))
        for release, result in pairs
        for i in TESTS
        if (estimate := result.estimate(i)) is not None
    ]
    table = Table(("Release", "How the model was trained and scored"), tuple(methods))
    return Part(
        "utility",
        "What can still be learnt",
        "A model of the true label is trained on each release alone, with a loss corrected for the "
        "mechanism, and scored on rows that no release contains.",
        figures,
        tables=(("Training", table),) if methods else (),
        missing="" if groups else _NO_TEST,
    )


def _scored(place: int, title: str, scores: Sequence[tuple[str, Quantity]]) -> Figure:
    table = group_table([(title, scores)])
    return interval_figure(f"utility-{place}", title, title.lower(), scores, table)
