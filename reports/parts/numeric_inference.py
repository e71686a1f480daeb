"""Attacks on labels that are numbers: every score of every guess."""

from ldpaudit.reports.parts.part import Part, Section
from ldpaudit.reports.parts.scores import score_table


def numbers_part(section: Section) -> Part:
    """Return the scores of every guess of a number, the strongest first."""
    return Part(
        "numbers-guessed",
        "Attacks on numbers",
        "An attack guesses every person's true number; the smaller its error, the more the release "
        "reveals. It is compared with guesses from other people's labels and from the features "
        "alone, which need no release: any gain over them comes from the release.",
        quantities=section.plain,
        tables=(("Every score of every guess", score_table(section.scores, "Guess")),),
    )
