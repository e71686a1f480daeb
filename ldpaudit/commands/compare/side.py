"""One release of a comparison, and which of its numbers are an attack's."""

from dataclasses import dataclass

from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.commands.utility.scores import Utility
from ldpaudit.result import AuditResult


@dataclass(frozen=True)
class Side:
    """One release of a comparison with all that is known of it.

    Attributes
    ----------
    letter : str
    result : AuditResult
    guesses : HeldOutGuesses or None
        Which held-out guesses were right, while the comparison lasts; None for a stored result.
    utility : Utility or None
        How a model trained on it does on the test rows.
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

    Only attacks that look at the release are held against the features alone.
    """
    gain = ".multiplicative_advantage"
    names = [e.id.split(".")[1] for e in result.estimates if e.id.endswith(gain)]
    scored = {name: result.estimate(f"attack.{name}.{measure}") for name in names}
    return {n: e.value for n, e in scored.items() if e is not None and e.kind == "certified"}


def given_release(result: AuditResult) -> set[str]:
    """Return the attacks that learn from the rows they guess: they have no accuracy in sample."""
    names = attack_scores(result)
    return {n for n in names if result.estimate(f"attack.{n}.in_sample.accuracy") is None}


def number_scores(result: AuditResult, measure: str) -> dict[str, float]:
    """Return a score of each attack on numeric labels by name, references left out."""
    names = ("released-value", "posterior-mean", "posterior-median", "interval")
    scored = {name: result.estimate(f"numeric.{name}.{measure}") for name in names}
    return {name: e.value for name, e in scored.items() if e is not None}
