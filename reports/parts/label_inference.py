"""Attacks against their references, class by class and over the confidence of their guesses."""

from collections.abc import Mapping, Sequence
from typing import Final

from ldpaudit.reports.charts.curves import curve_figure
from ldpaudit.reports.charts.intervals import Cell, Table
from ldpaudit.reports.parts.part import Part, Section, drawn
from ldpaudit.reports.parts.scores import by_measure, score_of, score_table
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import Quantity

REFERENCES: Final = ("prior", "features-only", "ceiling-estimate", "ceiling", "optimum")
"""What attacks are compared with; stored results may have an accuracy of ``ceiling``."""
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
"""What each reference means, in the order in which it is read."""
_WHOLE: Final = (
    " Attacks learn from one half of the people and guess the other half; the attack on the whole "
    "release learns from all but the part that it guesses."
)


def attacks_part(section: Section) -> Part:
    """Return the attacks' scores and their references."""
    single = [q for q in section.scores if not score_of(q).group]
    accuracies = by_measure(single, "accuracy")
    tables = (
        ("Every score of every attack", score_table(single, "Attack", _rank)),
        ("What the references mean", _reference_table(accuracies)),
        ("The strongest attack by class and slice", score_table(_grouped(section), "Rows")),
    )
    curves = (curve_figure([c], section.printer, shown(c.title)) for c in section.curves)
    return Part(
        "attacks",
        "Every attack",
        "An attack guesses every person's true label. How often it is right means little alone: "
        "the features may reveal a label without any release. So each attack is compared with the "
        "majority guess, with an attacker who has only the features, and with the best that the "
        "claim allows. If a release hides the label, attacks do no better than the features alone."
        + (_WHOLE if "bayes-whole-release" in accuracies else ""),
        drawn(tuple(curves)),
        section.plain,
        tuple((title, table) for title, table in tables if table.rows),
    )


def _grouped(section: Section) -> Sequence[Quantity]:
    return [q for q in section.scores if score_of(q).group]


def _reference_table(accuracies: Mapping[str, Quantity]) -> Table:
    """Return what each reference that was measured means."""
    body: list[tuple[Cell, ...]] = [
        (shown(score_of(accuracies[name]).row, 60), accuracies[name], words)
        for name, words in _MEANINGS.items()
        if name in accuracies
    ]
    return Table(("Reference", "Accuracy", "Means"), tuple(body))


def _rank(attack: str) -> int:
    return 2 + REFERENCES.index(attack) if attack in REFERENCES else int(attack != "best")
