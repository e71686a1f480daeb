"""The part of a comparison's page about attacks on labels that are numbers."""

from collections.abc import Sequence
from typing import Final

from ldpaudit.reports.charts.comparison import group_figure, group_table
from ldpaudit.reports.charts.intervals import Figure
from ldpaudit.reports.pages.comparison_tables import Pair, groups_of
from ldpaudit.reports.parts import Part
from ldpaudit.reports.text.wording import name_of

_ERROR: Final = ".mse"
_FIRST: Final = ("numeric.best.", "numeric.prior.", "numeric.features-only.")


def numeric_attacks_part(pairs: Sequence[Pair]) -> Part | None:
    """Return the attacks on numbers side by side, None where there are none."""
    every = [e.id for _, result in pairs for e in result.estimates if _is_score(e.id)]
    if not every:
        return None
    # The strongest first, then what is guessed without a release, then each attack.
    order = sorted(dict.fromkeys(every), key=_rank)
    errors = groups_of(pairs, [i for i in order if i.endswith(_ERROR)], _attack_name)
    figures: tuple[Figure, ...] = ()
    if errors:
        title = "Mean squared error of each guess, with its interval"
        figures = (group_figure("attacks", title, "squared label units", errors),)
    table = group_table(groups_of(pairs, order, name_of), "Score")
    return Part(
        "attacks",
        "Attacks side by side",
        "An attack guesses every person's true number; the smaller its squared error, the more a "
        "release gives away. What other people's labels and the features alone allow is beside it: "
        "it takes no release.",
        figures,
        tables=(("Every score on every release", table),),
    )


def _attack_name(identifier: str) -> str:
    return name_of(identifier).rsplit(": ", 1)[0]


def _is_score(identifier: str) -> bool:
    return identifier.startswith("numeric.") and identifier.count(".") == 2


def _rank(identifier: str) -> int:
    prefixes = [place for place, prefix in enumerate(_FIRST) if identifier.startswith(prefix)]
    return prefixes[0] if prefixes else len(_FIRST)
