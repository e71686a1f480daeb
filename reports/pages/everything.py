"""Everything that a section of a result holds, as a folded section of the page."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ldpaudit.reports.charts.curves import curve_table, histogram_figure, histogram_table, up_to
from ldpaudit.reports.charts.figure import Cell, Figure, Rule, Table, drawn
from ldpaudit.reports.charts.rows import epsilon_figure
from ldpaudit.reports.pages.numbers import (
    MEANINGS,
    REFERENCES,
    Numbers,
    bounds_of,
    by_measure,
    first_bounds,
    main_curve,
    score_of,
    score_table,
)
from ldpaudit.reports.pages.page import Section
from ldpaudit.reports.text.quantities import Quantity, is_epsilon
from ldpaudit.reports.text.wording import audit_name
from ldpaudit.result.harmless import as_identifier, shown

_RENYI: Final = (
    "renyi.release",
    "renyi.release.estimate",
    "renyi.synthetic",
    "renyi.double_rr_epsilon",
    "renyi.double_rr_floor",
    "mechanism.rdp",
)
"""The lines of the first picture, in the order of their dashes."""


_TITLES: Final = {
    "replay": "The replay",
    "mechanism": "Every bound of ε",
    "numeric-inference": "Attacks on numbers",
    "label-inference": "Every attack",
    "renyi": "Rényi curve",
}


_INTROS: Final = {
    "mechanism": "Only the first bound decides; the others are not corrected for looking at "
    "several.",
    "numeric-inference": "An attack guesses every person's true number; the smaller its error, the "
    "more the release reveals. It is compared with guesses from other people's labels and from the "
    "features alone, which need no release: any gain over them comes from the release.",
    "instance-loss": "ν is what the release, features and label together, reveals about one "
    "person's true label: how far it moves the log-odds, in nats, from the overall shares of the "
    "labels. It includes what the features alone reveal, so it can be large although ε is small. "
    "J(τ) is the share of people who lose τ nats or more.",
    "label-inference": "An attack guesses every person's true label. How often it is right means "
    "little alone: the features may reveal a label without any release. So each attack is compared "
    "with the majority guess, with an attacker who has only the features, and with the best that "
    "the claim allows. If a release hides the label, attacks do no better than the features alone.",
    "renyi": "The Rényi divergence of order α measures how far apart the outputs for two true "
    "labels can be; it grows with α. An exact curve is computed from the declaration alone and "
    "rises to ε. Released rows hold features as well as the label, so their curve may lie far "
    "above ε. Only a certified lower bound is proof; estimates end where there are too few rows to "
    "support them.",
    "replay": "The noise was drawn again from the key that is kept with the true labels, and every "
    "row was compared. Rows that are equal are what the declared mechanism draws with the key that "
    "the release commits to. That says nothing of the features.",
    "power": "If an audit finds nothing, what matters is what it could have found.",
    "assumptions": "Bounds of ε need noise of its own for each row, labels that depend on nothing "
    "but the true label, and features that were not computed from the released label. Each is "
    "tested; bounds leave out the columns, and all but one of the rows, for which it fails.",
    "observational": "An attacker sees features and released label, is shown either the true label "
    "or one redrawn from the features, and guesses which it is. ε limits how often the guess is "
    "right, even if the mechanism uses the features. Bounds are certified among rows with equal "
    "features and for canaries; with a model of the label they are estimated.",
    "aggregates": "Labels were released as sums over bags. An attacker who knows what the features "
    "reveal guesses every label of a bag from its sum. Bags are independent but rows are not, so "
    "every interval counts bags.",
    "columns": "Noise on the label hides nothing that another column reveals, and none of it hides "
    "who somebody is. Counted here are columns that tell the label by themselves, or by a row near "
    "by, and columns that may lead back to a person; and whether the order of the rows tells "
    "labels.",
    "person": "Several private columns of a person add up, and so do releases with new noise; "
    "answers that are remembered do not. ε of everything is bounded by the bounds of each, added "
    "up, and by all answers as one; the test of independence asks whether noise was drawn as "
    "declared. The vote guesses a label by what most releases say.",
    "companions": "An attacker who guesses one private column also sees its noisy companions. "
    "Columns are correlated, so these reveal something of it, too: at most what their ε allow.",
    "synthetic": "Features were replaced by synthetic ones. They should look like true rows, but "
    "be no nearer to the row that they replace, or to audited rows, than to any other: nearer ones "
    "reveal true rows. The risk of singling out and linking people is what an attack finds of "
    "audited people beyond what it finds of held-out ones.",
}


_UNKNOWN: Final = "What this audit measured, each number with its kind and level."
_WHOLE: Final = (
    " Attacks learn from one half of the people and guess the other half; the attack on the whole "
    "release learns from all but the part that it guesses."
)


def every_number(numbers: Numbers) -> Section:
    """Return everything that a section of the result holds; what cannot be drawn is in a table."""
    name = numbers.name
    figures, tables, quantities = _EVERY.get(name, _default)(numbers)
    title = _TITLES.get(name) or audit_name(name) or "Further numbers"
    intro = _INTROS.get(name, _UNKNOWN)
    if any(score_of(q).subject == "bayes-whole-release" for q in numbers.scores):
        intro += _WHOLE
    return numbers.section(
        as_identifier(name),
        title,
        sentences=(intro,),
        figures=drawn(figures),
        quantities=quantities,
        tables=tuple((title, table) for title, table in tables if table.rows),
    )


Everything = tuple[Sequence[Figure | None], Sequence[tuple[str, Table]], tuple[Quantity, ...]]


def _default(numbers: Numbers) -> Everything:
    figures = [numbers.curve([curve]) for curve in numbers.curves]
    figures += [histogram_figure(h, (), shown(h.title), numbers.place) for h in numbers.histograms]
    of_curves = [curve_table([("", curve)], numbers.printer) for curve in numbers.curves]
    parts = (*numbers.curves, *numbers.histograms)
    every = (*of_curves, *map(histogram_table, numbers.histograms))
    undrawn = [
        (shown(part.title), table)
        for part, table, figure in zip(parts, every, figures, strict=True)
        if figure is None
    ]
    first = "Guess" if numbers.name == "numeric-inference" else ""
    scores = [("Scores", score_table(numbers.scores, first))] if numbers.scores else []
    return figures, [*scores, *undrawn], numbers.plain


def _every_bound(numbers: Numbers) -> Everything:
    table = Table(("Method", "ε (nats)"), tuple((q.name, q) for q in bounds_of(numbers)))
    others = [e for e in numbers.estimates if not is_epsilon(e) and e.kind != "exact"]
    bounds, printer = first_bounds(numbers), numbers.printer
    figures: list[Figure] = []
    if len(bounds) > 1:
        figure = epsilon_figure(bounds, numbers.result, printer.claim, numbers.place)
        figures = [replace(figure, title="Every bound of ε against the claim")]
    return figures, [("Claimed against measured ε", table)], printer.quantities(others)


def _every_loss(numbers: Numbers) -> Everything:
    quantities = tuple(q for q in numbers.plain if not is_epsilon(q.estimate))
    means = [q for q in quantities if q.id in ("instance_loss.mean_lower", "instance_loss.mean")]
    figures = [numbers.curve([c]) for c in numbers.curves if c is not main_curve(numbers)]
    for one in numbers.histograms:
        figures.append(histogram_figure(one, means, shown(one.title), numbers.place))
    return figures, (), quantities


def _every_attack(numbers: Numbers) -> Everything:
    single = [q for q in numbers.scores if not score_of(q).group]
    grouped = [q for q in numbers.scores if score_of(q).group]
    accuracies = by_measure(single, "accuracy")
    meanings: list[tuple[Cell, ...]] = [
        (shown(score_of(accuracies[name]).row, 60), accuracies[name], words)
        for name, words in MEANINGS.items()
        if name in accuracies
    ]
    tables = (
        ("Every score of every attack", score_table(single, "Attack", _rank)),
        ("What the references mean", Table(("Reference", "Accuracy", "Means"), tuple(meanings))),
        ("The strongest attack by class and slice", score_table(grouped, "Rows")),
    )
    return [numbers.curve([curve]) for curve in numbers.curves], tables, numbers.plain


def _rank(attack: str) -> int:
    return 2 + REFERENCES.index(attack) if attack in REFERENCES else int(attack != "best")


def _every_divergence(numbers: Numbers) -> Everything:
    """Return one picture over α of what was claimed, bounded and estimated; then the parts."""
    printer, claimed = numbers.printer, numbers.result.mechanism.epsilon
    divergences = {curve.id: curve for curve in numbers.curves if curve.axis == "divergence"}
    main = [divergences.pop(name) for name in _RENYI if name in divergences]
    # The exact curve ends where the measured ones do.
    ends = [curve.x[-1] for curve in main if curve.id != _RENYI[-1] and curve.x]
    main = [up_to(curve, max(ends)) for curve in main] if ends else main
    rules = []
    if claimed and claimed < 1e300:
        rules.append(Rule(claimed, "", f"claimed ε = {printer.claim}", 3))
    parts = list(divergences.values())
    figures = [numbers.curve(main, "Rényi divergence by order", rules=rules)] if main else []
    figures += [numbers.curve(parts, "Rényi divergence: the parts behind it")] if parts else []
    figures += [numbers.curve([c]) for c in numbers.curves if c.axis != "divergence"]
    return figures, (), numbers.plain


_EVERY: Final[dict[str, Callable[[Numbers], Everything]]] = {
    "mechanism": _every_bound,
    "instance-loss": _every_loss,
    "label-inference": _every_attack,
    "renyi": _every_divergence,
}
"""Sections with pictures and tables of their own."""
