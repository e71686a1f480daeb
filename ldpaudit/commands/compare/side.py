"""One release of a comparison, and which of its numbers are an attack's."""

from dataclasses import dataclass

from ldpaudit.attacks.numeric.guesses import ATTACKS
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.commands.utility.scores import Utility
from ldpaudit.result import AuditResult, Estimate


@dataclass(frozen=True)
class Side:
    """One release of a comparison.

    Attributes
    ----------
    guesses : HeldOutGuesses or None
        Which held-out guesses were right, in memory only; None for a stored result.
    utility : Utility or None
        The scores of a model trained on it, on the test rows.
    paired : bool
        Whether its rows can be paired with those of the first release.
    """

    letter: str
    result: AuditResult
    guesses: HeldOutGuesses | None
    utility: Utility | None
    paired: bool


def attack_scores(result: AuditResult, measure: str = "accuracy") -> dict[str, float]:
    """Return a certified score of each attack on a release by name, references left out.

    Only attacks that use the release have an advantage over the features alone.
    """
    attacks = scores_of(result, "label-inference", "multiplicative_advantage")
    scored = scores_of(result, "label-inference", measure)
    return {n: e.value for n, e in scored.items() if n in attacks and e.kind == "certified"}


def given_release(result: AuditResult) -> set[str]:
    """Return the attacks that learn from the rows they guess: they have no accuracy in sample."""
    inside = scores_of(result, "label-inference", "in_sample.accuracy")
    return {name for name in attack_scores(result) if name not in inside}


def number_scores(result: AuditResult, measure: str) -> dict[str, float]:
    """Return a score of each attack on numeric labels by name, references left out."""
    scored = scores_of(result, "numeric-inference", measure)
    return {name: e.value for name, e in scored.items() if name in ATTACKS}


def scores_of(result: AuditResult, section: str, measure: str) -> dict[str, Estimate]:
    """Return the scores of one measure on all rows, by the name of what is scored."""
    return {
        e.score.subject: e
        for e in result.estimates
        if e.score and e.section == section and e.score.measure == measure and not e.score.group
    }
