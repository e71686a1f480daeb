"""Attacks on labels that are numbers: how near their guesses come."""

from collections.abc import Mapping
from typing import Final

from ldpaudit.reports.charts.intervals import Figure, interval_figure
from ldpaudit.reports.parts.part import Part, Section, drawn
from ldpaudit.reports.parts.scores import by_measure, score_of, score_table
from ldpaudit.reports.text.quantities import Quantity

_REFERENCES: Final = ("prior", "features-only")
_FIGURE: Final = "Mean squared error of each guess, with its interval"


def numbers_part(section: Section) -> Part:
    """Return the scores of every guess of a number, the strongest first."""
    errors = by_measure(section.scores, "mse")
    return Part(
        "numbers-guessed",
        "Attacks on numbers",
        "An attack guesses every person's true number; the smaller its error, the more the release "
        "reveals. It is compared with guesses from other people's labels and from the features "
        "alone, which need no release: any gain over them comes from the release.",
        drawn([_figure(errors)]),
        section.plain,
        (("Every score of every guess", score_table(section.scores, "Guess")),),
        lead=_lead(errors),
    )


def _figure(errors: Mapping[str, Quantity]) -> Figure | None:
    named = [(score_of(quantity).row, quantity) for quantity in errors.values()]
    if not named:
        return None
    table = score_table(errors.values(), "Guess")
    return interval_figure("numbers-guessed", _FIGURE, "squared label units", named, table)


def _lead(errors: Mapping[str, Quantity]) -> str:
    """Return the headline: the strongest guess and those that need no release."""
    if "best" not in errors:
        return ""
    others = [errors[name] for name in _REFERENCES if name in errors]
    beside = " and ".join(f"{q.text} for “{score_of(q).row}”" for q in others)
    text = f"The strongest guess has a mean squared error of {errors['best'].text}"
    return f"{text}, against {beside}." if beside else f"{text}."
