"""What attackers learn, always beside what the features alone tell."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.intervals import Figure, attack_figure, interval_figure
from ldpaudit.reports.parts.label_inference import REFERENCES
from ldpaudit.reports.parts.part import Section
from ldpaudit.reports.parts.scores import by_measure, score_of, score_table
from ldpaudit.reports.summary.told import Told
from ldpaudit.reports.text.quantities import Quantity
from ldpaudit.reports.text.wording import missing

MOST: Final = 5
"""Attacks in the picture; the part at the end of the page lists all."""
_FURTHER: Final = (
    "synthetic.own_row_share",
    "synthetic.copies_share",
)
"""Numbers of other attacks, shown where they were measured."""
_BLIND: Final = {"features-only": "features", "prior": "labels of others"}
"""Guesses without the release, and what the picture calls them."""
_WHY: Final = (
    "How often an attack is right means little alone: features may tell a label without any "
    "release. What counts is what the release adds."
)


@dataclass(frozen=True)
class Attacks:
    """The scores of all attacks of a result: on classes, on classes in bags, and on numbers."""

    classes: Section
    bags: Section
    numbers: Section

    @cached_property
    def accuracies(self) -> dict[str, Quantity]:
        """By attack or reference, how often it is right."""
        return by_measure((*self.classes.scores, *self.bags.scores), "accuracy")

    @cached_property
    def ranked(self) -> list[str]:
        """The attacks, the strongest first."""
        scores = self.accuracies
        tried = [name for name in scores if name not in REFERENCES]
        return sorted(tried, key=lambda n: (-scores[n].estimate.value, n != "best"))

    @cached_property
    def gain(self) -> Quantity | None:
        """What the release adds to the strongest attack."""
        gains = by_measure((*self.classes.scores, *self.bags.scores), "advantage")
        return gains.get("best")

    @cached_property
    def errors(self) -> dict[str, Quantity]:
        """By guess or reference, its mean squared error."""
        return by_measure(self.numbers.scores, "mse")


def attackers_told(attacks: Attacks) -> Told:
    """Return the strongest attacks and their references in sentences and one picture."""
    result, printer = attacks.classes.result, attacks.classes.printer
    found = bool(attacks.accuracies or attacks.errors)
    further = filter(None, map(result.estimate, _FURTHER))
    return Told(
        "learn",
        "What attackers learn",
        (*_numbers(attacks.errors), *_classes(attacks), *((_WHY,) if found else ())),
        tuple(_figures(attacks)),
        printer.quantities(further),
        missing="" if found else missing(result.audits, "label-inference"),
        more=_part(attacks),
    )


def _part(attacks: Attacks) -> str:
    """Return the key of the part with all scores."""
    if attacks.errors:
        return "numbers-guessed"
    return "attacks" if attacks.classes.scores else "section-aggregates"


def _classes(attacks: Attacks) -> Iterator[str]:
    scores = attacks.accuracies
    if attacks.ranked:
        best = scores[attacks.ranked[0]].percent
        yield f"The best attack guesses {best} of the labels right.{_blind(scores)}"
    if attacks.gain is not None and "features-only" in scores:
        yield f"Over the features alone the release adds {_points(attacks.gain)}."


def _blind(scores: Mapping[str, Quantity]) -> str:
    """Return what attacks reach that do not see the released labels."""
    words = {
        "features-only": "from the features alone",
        "prior": "by naming the most frequent class for everybody",
    }
    known = [f"{scores[name].percent} {text}" for name, text in words.items() if name in scores]
    return f" Without the release it is {', and '.join(known)}." if known else ""


def _points(gain: Quantity) -> str:
    """Return what the release adds, in percentage points."""
    low = gain.estimate.low
    certain = "; it may add nothing" if low is not None and low <= 0 else ""
    points = gain.percent.removesuffix("\u00a0%")
    return f"{points} percentage points ({gain.words}{certain})"


def _numbers(errors: Mapping[str, Quantity]) -> Iterator[str]:
    if "best" not in errors:
        return
    words = {
        "features-only": "from the features alone, without the release",
        "prior": "from other people’s labels",
    }
    known = [f"{errors[name].text} {text}" for name, text in words.items() if name in errors]
    against = f", against {' and '.join(known)}" if known else ""
    yield (
        "The best guess of a person’s number has a mean squared error of "
        f"{errors['best'].text}{against}. The smaller the error, the more is learnt."
    )


def _figures(attacks: Attacks) -> Iterator[Figure]:
    """Yield one picture: of numbers where they were guessed, else of classes."""
    if attacks.errors:
        yield _error_figure(attacks.errors)
        return
    scores = attacks.accuracies
    references = [scores[name] for name in REFERENCES if name in scores]
    if attacks.ranked:
        yield attack_figure([scores[name] for name in attacks.ranked[:MOST]], references)


def _error_figure(errors: Mapping[str, Quantity]) -> Figure:
    """Return the guesses with the smallest errors; those without the release are lines."""
    blind = [name for name in _BLIND if name in errors]
    ranked = sorted(errors, key=lambda n: (errors[n].estimate.value, n != "best"))
    tried = [errors[name] for name in ranked if name not in _BLIND] or list(errors.values())
    dashes: tuple[charts.Dash, ...] = (2, 1)
    rules = [
        charts.Rule(
            errors[name].estimate.value,
            _BLIND[name],
            f"{score_of(errors[name]).row}: {errors[name].text}",
            dash,
        )
        for name, dash in zip(blind, dashes, strict=False)
    ]
    named = [(score_of(quantity).row, quantity) for quantity in tried[:MOST]]
    table = score_table(errors.values(), "Guess")
    return interval_figure(
        "numbers-guessed",
        "Mean squared error of each guess: the smaller, the more is learnt",
        "squared label units",
        named,
        table,
        rules,
    )
