"""The sections of an audit's page: what was found, in sentences and a picture; every number."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ldpaudit.reports.charts.before_after import columns_figure, confusion_figure, first_group
from ldpaudit.reports.charts.figure import Dash, Figure, Rule, Table, drawn
from ldpaudit.reports.charts.rows import epsilon_figure, group_figure
from ldpaudit.reports.pages.everything import every_number
from ldpaudit.reports.pages.numbers import (
    REFERENCES,
    Numbers,
    Scores,
    by_measure,
    first_bounds,
    main_curve,
    row_of_score,
    score_table,
)
from ldpaudit.reports.pages.page import Section
from ldpaudit.reports.text.quantities import Printer, Quantity, is_epsilon
from ldpaudit.reports.text.wording import missing, promise
from ldpaudit.result import AuditResult, Curve, Estimate
from ldpaudit.result.harmless import shown
from ldpaudit.result.numbers import as_percent, fold, number, rows, share_up
from ldpaudit.result.sentence import Sentence

_SHORT: Final = {
    "prior": "majority",
    "features-only": "features",
    "ceiling-estimate": "ceiling",
    "ceiling": "ceiling",
    "optimum": "optimum",
}


_MOST_ATTACKS: Final = 3
_MOST_TOGETHER: Final = 8
_MEANS: Final = (
    "instance_loss.mean_lower",
    "instance_loss.mean_lower_if_claim_holds",
    "instance_loss.features_mean",
    "instance_loss.label_mean",
)
FILE_ORDER: Final = "file-order"
"""The key of the section that gives way first where a page grows too large."""


_COPIES: Final = ("synthetic.own_row_share", "synthetic.copies_share")
"""Curves of J(τ), each with the mean of its estimate."""


_OF_LOSSES: Final = ("instance-loss-exceedance", "renyi-epsilon")
"""The checks whose answers are about people's losses."""


_SHARES: Final = (0.5, 0.1, 0.01)
"""Of the people, for whom the least loss is told."""


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


def sections_of(result: AuditResult, printer: Printer, place: str = "") -> tuple[Section, ...]:
    """Return what was found in short sections, all of the numbers folded into each."""
    rest = dict.fromkeys(_listed(result))

    def every(name: str) -> Section:
        return every_number(Numbers(name, result, printer, f"{place}all-"))

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
    bounds, decisive = first_bounds(numbers), printer.decisive
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
    curve = main_curve(numbers)
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
