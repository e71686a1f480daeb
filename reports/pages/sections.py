"""The sections of an audit's page: what was found, in sentences and a picture; every number."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from ldpaudit.reports.charts.before_after import columns_figure, confusion_figure, first_group
from ldpaudit.reports.charts.curves import (
    curve_figure,
    curve_table,
    histogram_figure,
    histogram_table,
    up_to,
)
from ldpaudit.reports.charts.figure import Cell, Dash, Figure, Rule, Table, drawn
from ldpaudit.reports.charts.rows import epsilon_figure, group_figure
from ldpaudit.reports.pages.page import Section
from ldpaudit.reports.text.quantities import Printer, Quantity, is_epsilon
from ldpaudit.reports.text.wording import audit_name, missing, promise
from ldpaudit.result import AuditResult, Curve, Estimate, Histogram, Score
from ldpaudit.result.harmless import as_identifier, shown
from ldpaudit.result.numbers import as_percent, fold, number, rows, share_up
from ldpaudit.result.sentence import Sentence

REFERENCES: Final = ("prior", "features-only", "ceiling-estimate", "ceiling", "optimum")
"""What attacks are compared with; stored results may have an accuracy of ``ceiling``."""
_SHORT: Final = {
    "prior": "majority",
    "features-only": "features",
    "ceiling-estimate": "ceiling",
    "ceiling": "ceiling",
    "optimum": "optimum",
}
_MEANINGS: Final = {
    "prior": "the most frequent class for everyone, without any data about the person",
    "features-only": "what the features alone reveal to someone who knows true labels of other "
    "people but has no release; any gain beyond it comes from the release",
    "oracle": "an attacker who learns features and channel from true labels of other people: about "
    "the most that can be learnt from this many rows",
    "optimum": "what the best attack would reach on a release made as claimed, by the model of how "
    "labels depend on features",
    "ceiling-estimate": "what no attack can exceed if the claim holds and the model is right",
    "ceiling": "what no attack can exceed if the claim holds, by the same model",
}
_MOST_ATTACKS: Final = 3
_MOST_BOUNDS: Final = 6
_MOST_TOGETHER: Final = 8
_FIRST_BOUNDS: Final = (
    "mechanism.epsilon_lower",
    "mechanism.subgroup_epsilon_lower",
    "release_only.epsilon_lower",
    "mechanism.epsilon_observed",
)
FILE_ORDER: Final = "file-order"
"""The key of the section that gives way first where a page grows too large."""
_COPIES: Final = ("synthetic.own_row_share", "synthetic.copies_share")
_MEANS: Final = (
    "instance_loss.mean_lower",
    "instance_loss.mean_lower_if_claim_holds",
    "instance_loss.features_mean",
    "instance_loss.label_mean",
)
_CURVES: Final = {
    "instance_loss.exceedance": "instance_loss.mean",
    "instance_loss.exceedance_learned": "instance_loss.mean_learned",
}
"""Curves of J(τ), each with the mean of its estimate."""
_OF_LOSSES: Final = ("instance-loss-exceedance", "renyi-epsilon")
"""The checks whose answers are about people's losses."""
_SHARES: Final = (0.5, 0.1, 0.01)
"""Of the people, for whom the least loss is told."""
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
_ORDER: Final = (
    *(
        "replay",
        "person",
        "mechanism",
        "companions",
        "numeric-inference",
        "aggregates",
        "instance-loss",
    ),
    *("label-inference", "observational", "renyi", "synthetic", "columns"),
)
"""Any other section comes after these, and the power last."""
_READING: Final = (
    "The release leaks at least what is proven. A bound below the claim does not show that the "
    "claim holds: it is what this audit found."
)
_WHY: Final = "What counts is what the release adds: features may reveal a label without it."
_LOSS: Final = (
    "A person’s loss is how far features and released label together shift the odds of that "
    "person’s label, compared with knowing the shares of the labels only. It counts what the "
    "features tell as well, so it can be large although ε is small."
)
_CONFUSION: Final = (
    "For each true label, how often it was released as which label, against what the claimed "
    "channel says. Below: the interval of the difference, in percentage points. A triangle marks "
    "an interval that leaves out the claim. The check claimed-channel decides, at its own level."
)
_CONFUSION_ALONE: Final = "For each true label, how often it was released as which label."
_COLUMNS: Final = (
    "What the features reveal of the label, one column at a time: the share of the label's "
    "variance that a column explains. Of released labels it is smaller, as noise is not explained. "
    "Nothing is judged by it. In a small picture the column's values run from left to right; the "
    "lowest part is the share of people {}. Where it is level, the label does not depend on it."
)
Scores = Mapping[str, Quantity]


@dataclass(frozen=True)
class Numbers:
    """The numbers of one section of a result; ``place`` begins the ids of its figures."""

    name: str
    result: AuditResult
    printer: Printer
    place: str = ""

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Its estimates, in the order of the result."""
        return tuple(e for e in self.result.estimates if e.section == self.name)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """Its curves."""
        return tuple(c for c in self.result.curves if c.section == self.name)

    @cached_property
    def histograms(self) -> tuple[Histogram, ...]:
        """Its histograms."""
        return tuple(h for h in self.result.histograms if h.section == self.name)

    @cached_property
    def scores(self) -> tuple[Quantity, ...]:
        """Its estimates that are scores of a table."""
        return self.printer.quantities(e for e in self.estimates if e.score is not None)

    @cached_property
    def plain(self) -> tuple[Quantity, ...]:
        """Its other estimates."""
        return self.printer.quantities(e for e in self.estimates if e.score is None)

    def found(self, ids: Iterable[str]) -> tuple[Quantity, ...]:
        """Return the numbers of some ids that the result has."""
        return self.printer.quantities(filter(None, map(self.result.estimate, ids)))

    def curve(
        self, curves: Sequence[Curve], title: str = "", **more: Sequence[Rule]
    ) -> Figure | None:
        """Return the picture of some curves."""
        text = title or shown(curves[0].title)
        return curve_figure(curves, self.printer, text, self.place, **more)

    def section(self, key: str, title: str, **fields: object) -> Section:
        """Return a section of the page with a key of its own."""
        return Section(f"{self.place}{key}", title, **fields)  # type: ignore[arg-type]


def sections_of(result: AuditResult, printer: Printer, place: str = "") -> tuple[Section, ...]:
    """Return what was found in short sections, all of the numbers folded into each."""
    rest = dict.fromkeys(_listed(result))

    def every(name: str) -> Section:
        return _every(Numbers(name, result, printer, f"{place}all-"))

    def with_numbers(section: Section, *names: str) -> Section:
        folded = tuple(one for name in names if name in rest and (one := every(name)).tells)
        for name in names:
            rest.pop(name, None)
        return replace(section, folded=folded)

    def numbers(name: str) -> Numbers:
        return Numbers(name, result, printer, place)

    several = bool(result.labels or result.releases)
    losses = {check.id for check in result.checks} & set(_OF_LOSSES)
    attacks = ("numeric-inference", "aggregates", "label-inference")
    found = list[Section]()
    if several:
        found.append(with_numbers(_together(numbers("person")), "person"))
    found.append(with_numbers(_claim(numbers("mechanism"), several), "mechanism"))
    found.append(with_numbers(_attackers(*map(numbers, attacks)), *attacks))
    if losses:  # Others read it under the further measurements.
        found.append(with_numbers(_losses(numbers("instance-loss")), "instance-loss"))
    # Where the headline's line has it, it is among the further measurements.
    if not Sentence.read(result.sentence).power:
        found.append(with_numbers(_power(numbers("power")), "power"))
    further = (
        *_before_and_after(numbers("")),
        *(one for name in rest if (one := every(name)).tells),
    )
    # What a whole has no numbers of, its columns and releases have.
    shown = tuple(one for one in found if not (one.missing and result.parts))
    more = numbers("").section("more", "Further measurements", folded=further)
    return (*shown, *((more,) if further else ()))


def _before_and_after(numbers: Numbers) -> Iterator[Section]:
    """Yield the pictures of labels before and after the noise, where true labels are known."""
    # Of one of several columns or releases, their tables.
    confusion, columns, place = numbers.result.confusion, numbers.result.columns, numbers.place
    if confusion is not None and confusion.entries:
        claimed = confusion.entries[0].expected is not None
        words = _CONFUSION if claimed else _CONFUSION_ALONE
        figure = confusion_figure(confusion, place)
        yield _drawn_or_listed(numbers, "confusion", figure.title, words, figure)
    if columns is not None and columns.shares:
        ranked = sorted(columns.shares, key=lambda one: -one.before)
        title = "Columns and the label, before and after noise"
        figure = columns_figure(columns, place, "What each column explains of the label", ranked)
        words = _COLUMNS.format(first_group(columns))
        section = _drawn_or_listed(numbers, "columns-explain", title, words, figure)
        if not place and len(ranked) > 1:
            title = "In the order of the file"
            other = columns_figure(columns, "file-", title, columns.shares)
            folded = Section(FILE_ORDER, title, figures=(replace(other, small=True),))
            section = replace(section, folded=(folded,))
        yield section


def _drawn_or_listed(numbers: Numbers, key: str, title: str, words: str, figure: Figure) -> Section:
    if numbers.place:
        return numbers.section(key, title, sentences=(words,), tables=((title, figure.table),))
    return numbers.section(key, title, sentences=(words,), figures=(figure,))


def _listed(result: AuditResult) -> Iterator[str]:
    """Yield the sections of a result in the order of the page."""
    named = [part.section for part in (*result.estimates, *result.curves, *result.histograms)]
    yield from (name for name in _ORDER if name in (*named, "mechanism"))
    yield from (name for name in named if name not in (*_ORDER, "power"))
    yield "power"


def _every(numbers: Numbers) -> Section:
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
    table = Table(("Method", "ε (nats)"), tuple((q.name, q) for q in _bounds(numbers)))
    others = [e for e in numbers.estimates if not is_epsilon(e) and e.kind != "exact"]
    bounds, printer = _first_bounds(numbers), numbers.printer
    figures: list[Figure] = []
    if len(bounds) > 1:
        figure = epsilon_figure(bounds, numbers.result, printer.claim, numbers.place)
        figures = [replace(figure, title="Every bound of ε against the claim")]
    return figures, [("Claimed against measured ε", table)], printer.quantities(others)


def _every_loss(numbers: Numbers) -> Everything:
    quantities = tuple(q for q in numbers.plain if not is_epsilon(q.estimate))
    means = [q for q in quantities if q.id in ("instance_loss.mean_lower", "instance_loss.mean")]
    figures = [numbers.curve([c]) for c in numbers.curves if c is not _main_curve(numbers)]
    for one in numbers.histograms:
        figures.append(histogram_figure(one, means, shown(one.title), numbers.place))
    return figures, (), quantities


def _every_attack(numbers: Numbers) -> Everything:
    single = [q for q in numbers.scores if not score_of(q).group]
    grouped = [q for q in numbers.scores if score_of(q).group]
    accuracies = by_measure(single, "accuracy")
    meanings: list[tuple[Cell, ...]] = [
        (shown(score_of(accuracies[name]).row, 60), accuracies[name], words)
        for name, words in _MEANINGS.items()
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


def _together(numbers: Numbers) -> Section:
    """Return what several columns and releases of the same people reveal together."""
    notes = [n for n in numbers.result.notes if n.audit == "person" and n.level == "info"]
    curves = [c for c in numbers.curves if c.kind == "certified" and len(c.x) > 2]
    others = [q for q in numbers.plain if not is_epsilon(q.estimate)]
    return numbers.section(
        "together",
        "Everything of a person",
        sentences=tuple(dict.fromkeys(shown(note.text) for note in notes)),
        figures=drawn([numbers.curve([curve]) for curve in curves[:1]]),
        quantities=(*numbers.scores, *others)[:_MOST_TOGETHER],
        missing="" if others or notes else "Not measured.",
    )


def _claim(numbers: Numbers, several: bool) -> Section:
    """Return ε claimed and measured: the bound that decides, and the strongest of each kind."""
    result, printer = numbers.result, numbers.printer
    bounds, decisive = _first_bounds(numbers), printer.decisive
    claimed = result.mechanism.epsilon
    # What decides stands first; the others, at their own levels, are in the folded part.
    first = bounds if decisive is None else (decisive,)
    without = claimed is None or math.isinf(claimed)
    sentence = promise(claimed, printer.claim, several) if without else ""
    check = next((c for c in result.checks if c.id == "claimed-epsilon"), None)
    if decisive is not None and check is not None and check.verdict == "fail" and not without:
        sentence = f"{promise(claimed, printer.claim, several)} The claim does not hold."
    sentences = (sentence, _READING) if bounds else (sentence,)
    figures = [epsilon_figure(first, result, printer.claim, numbers.place)] if first else []
    return numbers.section(
        "claim",
        "ε claimed and proven",
        sentences=tuple(filter(None, sentences)),
        figures=tuple(figures),
        missing="" if bounds else missing(result.audits, "mechanism"),
    )


def _first_bounds(numbers: Numbers) -> tuple[Quantity, ...]:
    """Return the bound that decides, and the strongest of each kind."""
    measured = [q for q in _bounds(numbers) if math.isfinite(q.estimate.value)]
    by_id, decisive = {quantity.id: quantity for quantity in measured}, numbers.printer.decisive
    chosen = {} if decisive is None else {decisive.id: decisive}
    chosen |= {name: by_id[name] for name in _FIRST_BOUNDS if name in by_id}
    for quantity in measured:  # and the first of every further audit
        if all(quantity.estimate.section != one.estimate.section for one in chosen.values()):
            chosen[quantity.id] = quantity
    return tuple(chosen.values())[:_MOST_BOUNDS]


def _bounds(numbers: Numbers) -> tuple[Quantity, ...]:
    """Return every ε that was measured, in any section; the one that decides first."""
    every = (e for e in numbers.result.estimates if is_epsilon(e) and e.kind != "exact")
    quantities, decisive = numbers.printer.quantities(every), numbers.printer.decisive
    if not quantities or decisive is None or decisive in quantities:
        return quantities
    return (decisive, *quantities)


def _attackers(guessed: Numbers, bags: Numbers, classes: Numbers) -> Section:
    """Return the strongest attacks and their references; numbers where they were guessed."""
    scored = (*classes.scores, *bags.scores)
    accuracies, errors = by_measure(scored, "accuracy"), by_measure(guessed.scores, "mse")
    gain = by_measure(scored, "advantage").get("best")
    figures, sentences = [], [*_of_numbers(errors), *_of_classes(accuracies, gain)]
    if errors:
        blind = {"features-only": "features", "prior": "labels of others"}
        ranked = sorted(errors, key=lambda n: (errors[n].estimate.value, n != "best"))
        title = "Mean squared error of each guess: the smaller, the more is learnt"
        titles, table = (title, "squared label units"), score_table(errors.values(), "Guess")
        figures.append(_ranked(classes.place, titles, errors, ranked, blind, table))
    elif ranked := ranked_attacks(accuracies):
        cells = [(row_of_score(q), q) for q in accuracies.values()]
        titles = ("Accuracy of each attack, with its interval", "accuracy")
        table = Table(("Attack or reference", "Accuracy"), tuple(cells))
        figures.append(_ranked(classes.place, titles, accuracies, ranked, _SHORT, table))
    found = bool(accuracies or errors)
    return classes.section(
        "learn",
        "What attackers learn",
        sentences=(*sentences, *((_WHY,) if found else ())),
        figures=tuple(figures),
        quantities=classes.found(_COPIES),
        missing="" if found else missing(classes.result.audits, "label-inference"),
    )


def ranked_attacks(scores: Scores) -> list[str]:
    """Return the attacks, the strongest first, references left out."""
    tried = [name for name in scores if name not in REFERENCES]
    return sorted(tried, key=lambda n: (-scores[n].estimate.value, n != "best"))


def _ranked(
    place: str,
    titles: tuple[str, str],
    scores: Scores,
    ranked: Sequence[str],
    blind: Mapping[str, str],
    table: Table,
) -> Figure:
    """Return the first scores in rows; those that need no release are lines."""
    dashes: tuple[Dash, ...] = (1, 2, 3, 0)
    rules = [
        Rule(scores[n].estimate.value, blind[n], f"{row_of_score(scores[n])}: {scores[n].text}", d)
        for n, d in zip([n for n in blind if n in scores], dashes, strict=False)
    ]
    tried = [n for n in ranked if n not in blind] or list(ranked)
    named = [(row_of_score(scores[n]), scores[n]) for n in tried[:_MOST_ATTACKS]]
    return group_figure((f"{place}attacks", *titles), [("", named)], table, rules)


def _of_classes(scores: Scores, gain: Quantity | None) -> Iterator[str]:
    words = {
        "features-only": "from the features alone",
        "prior": "by naming the most frequent class for everybody",
    }
    if ranked := ranked_attacks(scores):
        known = [f"{scores[name].percent} {text}" for name, text in words.items() if name in scores]
        blind = f" Without the release it is {', and '.join(known)}." if known else ""
        yield f"The best attack guesses {scores[ranked[0]].percent} of the labels right.{blind}"
    if gain is not None and "features-only" in scores:
        low = gain.estimate.low
        certain = "; it may add nothing" if low is not None and low <= 0 else ""
        yield (
            f"Over the features alone the release adds {gain.points} percentage points "
            f"({gain.words}{certain})."
        )


def _of_numbers(errors: Scores) -> Iterator[str]:
    words = {
        "features-only": "from the features alone, without the release",
        "prior": "from other people’s labels",
    }
    if "best" in errors:
        known = [f"{errors[name].text} {text}" for name, text in words.items() if name in errors]
        against = f", against {' and '.join(known)}" if known else ""
        yield (
            "The best guess of a person’s number has a mean squared error of "
            f"{errors['best'].text}{against}. The smaller the error, the more is learnt."
        )


def _losses(numbers: Numbers) -> Section:
    """Return how many people lose how much."""
    curve = _main_curve(numbers)
    title = "Share of people by the least that they lose"
    sentences = [_LOSS] if numbers.plain or curve else []
    people = [] if curve is None else _people(curve)
    curves = [] if curve is None else [numbers.curve([curve], title)]
    return numbers.section(
        "lose",
        "Who loses most",
        sentences=(*sentences, *people),
        figures=drawn(curves),
        quantities=numbers.found(_MEANS),
        missing="" if sentences else missing(numbers.result.audits, "instance-loss"),
    )


def _main_curve(numbers: Numbers) -> Curve | None:
    """Return J(τ): of its estimates the one with the larger mean, as each tends to be too low."""
    result = numbers.result
    found = [(result.estimate(m), result.curve(c)) for c, m in _CURVES.items()]
    curves = [(mean.value if mean else 0.0, curve) for mean, curve in found if curve]
    return max(curves, key=lambda pair: pair[0])[1] if curves else None


def _people(curve: Curve) -> Iterator[str]:
    """Yield how much some people lose at least: the points of the curve next to a few shares."""
    points = [(x, j) for x, j in zip(curve.x, curve.value, strict=True) if x > 0 and j > 0]
    if points:
        near = [min(points, key=lambda p: abs(math.log(p[1] / share))) for share in _SHARES]
        texts = [
            f"{as_percent(number(j))} of the people lose {number(x)} nats or more (the odds shift "
            f"{fold(x)})"
            for x, j in dict.fromkeys(near)
        ]
        yield f"By estimate, {'; '.join(texts)}."


def _power(numbers: Numbers) -> Section:
    """Return what a release would have had to leak to be found."""
    texts = tuple(_could(numbers.result))
    missed = "" if texts else missing(numbers.result.audits, "power")
    title = "What could have been missed"
    return numbers.section("missed", title, sentences=texts, missing=missed)


def _could(result: AuditResult) -> Iterator[str]:
    excess = result.estimate("power.min_detectable_excess")
    if excess is not None and math.isinf(excess.value):
        yield "Not even a large excess over the claim would have been found reliably."
    elif excess is not None:
        yield (
            f"With these {rows(result.release.rows)} rows, a release that leaks {_up(excess)} nats "
            f"more than it claims is found with 90 % probability{_if_assumed(excess)}. A smaller "
            "excess may have gone unseen."
        )
    share = result.estimate("power.smallest_clear_share")
    group = result.estimate("power.smallest_clear_group")
    found = [] if share is None else [f"{share_up(share.value)} of the rows at random"]
    if group is not None:
        found.append(f"a group of {rows(group.value, 'up')} rows that one column sets apart")
    if found:
        yield f"Found likewise: true labels released for {', or for '.join(found)}."
    known = result.estimate("power.with_truth.min_detectable_excess")
    if known is not None and math.isfinite(known.value):
        yield (
            f"With the true labels (--truth) an excess of {_up(known)} nats would be found"
            f"{_if_assumed(known)}."
        )


def _up(estimate: Estimate) -> str:
    return number(estimate.value, "up")


def _if_assumed(estimate: Estimate) -> str:
    return ", if its assumptions hold" if estimate.kind == "estimated" else ""


def score_table(
    quantities: Iterable[Quantity], first: str, rank: Callable[[str], int] | None = None
) -> Table:
    """Return scores as a table, its columns in the order of the row that has most of them.

    ``first`` is the header of the names; without a ``rank`` of a subject rows stand in the order
    of the result.
    """
    found: dict[tuple[str, str], dict[str, Quantity]] = {}
    for quantity in quantities:
        score = score_of(quantity)
        found.setdefault((score.subject, score.group), {})[score.measure] = quantity
    columns = {
        score_of(q).measure: score_of(q).column for row in found.values() for q in row.values()
    }
    measures = list(dict.fromkeys((*max(found.values(), key=len, default={}), *columns)))
    body: list[tuple[Cell, ...]] = []
    for key in sorted(found, key=lambda key: 0 if rank is None else rank(key[0])):
        cells = (found[key].get(measure, "–") for measure in measures)
        body.append((shown(score_of(next(reversed(found[key].values()))).row, 60), *cells))
    heads = (shown(columns[measure], 60) for measure in measures)
    return Table((first, *(head[:1].upper() + head[1:] for head in heads)), tuple(body))


def by_measure(quantities: Iterable[Quantity], measure: str) -> dict[str, Quantity]:
    """Return the scores of one measure on all rows, by the name of what is scored."""
    scored = ((score_of(quantity), quantity) for quantity in quantities)
    return {s.subject: q for s, q in scored if s.measure == measure and not s.group}


def score_of(quantity: Quantity) -> Score:
    """Return what a number is a score of; it is one."""
    assert quantity.estimate.score is not None
    return quantity.estimate.score


def row_of_score(quantity: Quantity) -> str:
    """Return what people call that which is scored."""
    return shown(score_of(quantity).row, 120)
