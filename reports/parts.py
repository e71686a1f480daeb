"""The parts of the report that hold numbers: what each shows, and why it is empty if it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ldpaudit.reports.charts.curves import (
    curve_figure,
    curve_table,
    histogram_figure,
    histogram_table,
)
from ldpaudit.reports.charts.intervals import Cell, Figure, Table, attack_figure, epsilon_figure
from ldpaudit.reports.charts.renyi import is_divergence, renyi_figures
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.numbers import number, rows
from ldpaudit.reports.text.quantities import Printer, Quantity, is_epsilon
from ldpaudit.reports.text.wording import (
    ATTACKS,
    METRICS,
    REFERENCE_WORDS,
    group_name,
    missing,
    name_of,
)
from ldpaudit.result import AuditResult, Estimate

REFERENCES: Final = ("prior", "features-only", "ceiling", "optimum")
"""What attacks are compared with."""
_EMPTY_CLAIMS: Final = {
    "": "Nothing was claimed, so there is nothing to hold these to.",
    "∞": "The claim is ε = ∞: it promises nothing, so nothing could refute it.",
}


@dataclass(frozen=True)
class Part:
    """One part of the report; ``missing`` says why it holds no number."""

    key: str
    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    lead: str = ""
    missing: str = ""


def all_parts(result: AuditResult, printer: Printer) -> tuple[Part, ...]:
    """Return the parts in the order of the report."""
    parts = (
        _epsilon(result, printer),
        _loss(result, printer),
        _attacks(result, printer),
        _renyi(result, printer),
        _power(result, printer),
    )
    further = _further(result, printer)
    return (*parts, further) if further.figures or further.tables else parts


def _epsilon(result: AuditResult, printer: Printer) -> Part:
    measured = [
        e for e in result.estimates if e.unit == "nats" and is_epsilon(e.id) and e.kind != "exact"
    ]
    quantities = printer.quantities(measured)
    others = [
        e
        for e in result.estimates
        if e.id.startswith("mechanism.") and e.kind != "exact" and e not in measured
    ]
    figures = (epsilon_figure(quantities, result, printer.claim),) if quantities else ()
    return Part(
        "epsilon",
        "Claimed against measured ε",
        "ε limits how much a released label can tell about the true one. A certified lower bound "
        "says that the release leaks at least that much. Each bound here holds at its own level by "
        "itself; the check holds the strongest against the claim at a level corrected for choosing "
        "it, and refutes the claim if it still lies above. Bounds below the claim prove nothing: "
        "they are what this audit could find.",
        figures,
        printer.quantities(others),
        lead=_EMPTY_CLAIMS.get(printer.claim, ""),
        missing="" if quantities else missing(result.audits, "mechanism"),
    )


def _loss(result: AuditResult, printer: Printer) -> Part:
    quantities = printer.quantities(
        e for e in result.estimates if e.id.startswith("instance_loss.") and not is_epsilon(e.id)
    )
    own = [c for c in result.curves if c.id.startswith("instance_loss.")]
    figures = [curve_figure([curve], printer, name_of(curve.id)) for curve in own]
    for histogram in result.histograms:
        if histogram.id.startswith("instance_loss."):
            means = _means(quantities)
            figures.append(histogram_figure(histogram, means, name_of(histogram.id)))
    return Part(
        "loss",
        "Instance-based loss",
        "ν is what the release, features and label together, tells about one person's true label: "
        "the shift of its log-odds, in nats, away from the shares of the labels. It counts what "
        "the features give away by themselves, so it can be large although ε is small. J(τ) is "
        "the share of people who lose τ nats or more.",
        _drawn(figures),
        quantities,
        missing="" if quantities or own else missing(result.audits, "instance-loss"),
    )


def _means(quantities: Sequence[Quantity]) -> list[Quantity]:
    names = ("instance_loss.mean_lower", "instance_loss.mean")
    return [quantity for name in names for quantity in quantities if quantity.id == name]


_WHOLE = (
    " Attacks learn from a half of the people and guess the other half, but for the one from the "
    "whole release, which learns from all but the eighth that it guesses."
)


def _attacks(result: AuditResult, printer: Printer) -> Part:
    every = [printer.quantity(e) for e in result.estimates if e.id.startswith("attack.")]
    found = {q.id: q for q in every if q.id.count(".") >= 2}
    accuracies = {
        key.split(".")[1]: quantity
        for key, quantity in found.items()
        if key.endswith(".accuracy") and key.count(".") == 2
    }
    references = [accuracies.pop(n) for n in REFERENCES if n in accuracies]
    inside = {name: found.get(f"attack.{name}.in_sample.accuracy") for name in accuracies}
    ranked = sorted(accuracies, key=lambda n: (-accuracies[n].estimate.value, n != "best"))
    pairs = [(accuracies[name], inside[name]) for name in ranked]
    figures: list[Figure | None] = [attack_figure(pairs, references)] if pairs else []
    figures += [
        curve_figure([curve], printer, shown(name_of(curve.id)))
        for curve in result.curves
        if curve.id.startswith("attack.")
    ]
    table = _attack_table(found)
    return Part(
        "attacks",
        "Attacks against their references",
        "An attack guesses every person's true label. How often it is right says little by itself: "
        "the features may give a label away without any release. So each is compared with the "
        "majority guess, with an attacker who has the features only, and with the best that the "
        "claim allows anyone. Doing no better than the features alone is what a release that hides "
        "the label looks like." + (_WHOLE if "bayes-whole-release" in accuracies else ""),
        _drawn(figures),
        tuple(q for q in every if q.id not in found),
        tables=tuple(
            (title, rows)
            for title, rows in (
                ("Every score of every attack", table),
                ("What the references mean", _reference_table(found)),
                ("The strongest attack by class and slice", _group_table(found)),
            )
            if rows.rows
        ),
        missing="" if every else missing(result.audits, "label-inference"),
    )


def _attack_table(found: dict[str, Quantity]) -> Table:
    """Return a row for each attack, the strongest first and the references last."""
    scores: dict[str, dict[str, Quantity]] = {}
    for key, quantity in found.items():
        _, attack, metric = key.split(".", 2)
        if metric in METRICS:
            scores.setdefault(attack, {})[metric] = quantity
    metrics = [metric for metric in METRICS if any(metric in own for own in scores.values())]
    body: list[tuple[Cell, ...]] = []
    for attack in sorted(scores, key=_rank):
        own = scores[attack]
        name = shown(ATTACKS.get(attack, attack), 60)
        body.append((name, *(own.get(metric, "–") for metric in metrics)))
    return Table(("Attack", *(METRICS[metric] for metric in metrics)), tuple(body))


def _reference_table(found: dict[str, Quantity]) -> Table:
    """Return what each reference that was measured means."""
    body: list[tuple[Cell, ...]] = [
        (ATTACKS[name], found[key], words)
        for name, words in REFERENCE_WORDS.items()
        if (key := f"attack.{name}.accuracy") in found
    ]
    return Table(("Reference", "Accuracy", "Means"), tuple(body))


def _group_table(found: dict[str, Quantity]) -> Table:
    """Return a row for each class and slice of which the strongest attack was scored."""
    groups: dict[str, dict[str, Quantity]] = {}
    for key, quantity in found.items():
        _, attack, rest = key.split(".", 2)
        group, _, score = rest.partition(".")
        if attack == "best" and score in ("accuracy", "advantage"):
            groups.setdefault(group, {})[score] = quantity
    body: list[tuple[Cell, ...]] = [
        (group_name(group), own.get("accuracy", "–"), own.get("advantage", "–"))
        for group, own in groups.items()
    ]
    return Table(("Rows", "Accuracy", "Additive advantage"), tuple(body))


def _rank(attack: str) -> int:
    return 2 + REFERENCES.index(attack) if attack in REFERENCES else int(attack != "best")


def _renyi(result: AuditResult, printer: Printer) -> Part:
    figures = renyi_figures(result, printer)
    quantities = printer.quantities(e for e in result.estimates if e.id.startswith("renyi."))
    return Part(
        "renyi",
        "Rényi curve",
        "The Rényi divergence of order α measures how far apart the outputs for two true labels "
        "can be; it grows with α. An exact curve is computed from the declaration alone and rises "
        "to ε. The released rows are more than the label: what the features tell counts too, so "
        "their curve may lie far above ε. Only a certified lower bound is proof; estimates end "
        "where the rows no longer support them.",
        _drawn(figures),
        quantities,
        missing="" if figures or quantities else missing(result.audits, "mechanism"),
    )


def _power(result: AuditResult, printer: Printer) -> Part:
    quantities = printer.quantities(e for e in result.estimates if e.id.startswith("power."))
    return Part(
        "power",
        "What this audit could have detected",
        "An audit that finds nothing is worth as much as what it could have found.",
        quantities=quantities,
        lead=_power_lead(result.estimate("power.min_detectable_excess"), result.release.rows),
        missing="" if quantities else missing(result.audits, "power"),
    )


def _power_lead(excess: Estimate | None, n: int) -> str:
    if excess is None:
        return ""
    if excess.value == float("inf"):
        return "No excess over the claim, however large, would have been found reliably."
    size = number(excess.value, "up")
    given = ", if the assumptions listed for that hold" if excess.kind == "estimated" else ""
    return (
        f"With these {rows(n)} rows, a release that leaks {size} nats more than it claims is found "
        f"with 90 % probability{given}. A smaller excess may have gone unseen."
    )


def _further(result: AuditResult, printer: Printer) -> Part:
    """Return curves and histograms that no other part knows."""
    figures: list[Figure | None] = []
    tables: list[tuple[str, Table]] = []
    for curve in result.curves:
        if not (is_divergence(curve.id) or curve.id.startswith(("instance_loss.", "attack."))):
            figure = curve_figure([curve], printer, shown(name_of(curve.id)))
            figures.append(figure)
            if figure is None:
                tables.append((shown(name_of(curve.id)), curve_table([curve], printer)))
    for histogram in result.histograms:
        if not histogram.id.startswith("instance_loss."):
            tables.append((shown(name_of(histogram.id)), histogram_table(histogram)))
    intro = "What other audits added."
    return Part("further", "Further curves", intro, _drawn(figures), (), tuple(tables))


def _drawn(figures: Sequence[Figure | None]) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if figure is not None)
