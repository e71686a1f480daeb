"""The part of a comparison's page about attacks on labels that are numbers."""

from collections.abc import Sequence
from typing import Final

from ldpaudit.reports.charts.comparison import group_table
from ldpaudit.reports.charts.intervals import Figure, group_figure
from ldpaudit.reports.pages.comparison_tables import Pair, groups_of, row_title, section_scores
from ldpaudit.reports.parts.part import Part
from ldpaudit.result import Score

_FIRST: Final = ("best", "prior", "features-only")


def numeric_attacks_part(pairs: Sequence[Pair]) -> Part | None:
    """Return the attacks on numbers side by side, None where there are none."""
    scores = {i: score for i, (score, _) in section_scores(pairs, "numeric-inference").items()}
    if not scores:
        return None
    # The strongest first, then guesses without a release, then each attack.
    order = sorted(scores, key=lambda i: _rank(scores[i]))
    errors = groups_of(pairs, (i for i in order if scores[i].measure == "mse"), row_title)
    figures: tuple[Figure, ...] = ()
    if errors:
        title = "Mean squared error of each guess, with its interval"
        titles = ("attacks", title, "squared label units")
        figures = (group_figure(titles, errors, group_table(errors)),)
    table = group_table(groups_of(pairs, order), "Score")
    return Part(
        "attacks",
        "Attacks side by side",
        "An attack guesses every person's true number; the smaller its squared error, the more a "
        "release reveals. Guesses from other people's labels and from the features alone need no "
        "released label: compare the attacks with them.",
        figures,
        tables=(("Every score on every release", table),),
    )


def _rank(score: Score) -> int:
    return _FIRST.index(score.subject) if score.subject in _FIRST else len(_FIRST)
