"""The best attack in a few words: how often it is right, or how far it is off."""

from dataclasses import dataclass
from typing import Final

from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult

_BLIND: Final = {
    False: {"attack.features-only.accuracy": "features alone", "attack.prior.accuracy": "majority"},
    True: {
        "numeric.features-only.mse": "features alone",
        "numeric.prior.mse": "other people’s labels",
    },
}
"""What attackers reach without the release: with classes, with numbers."""


_VOTES: Final = {
    "attack.vote-with-features.accuracy": "Vote and features are right for",
    "attack.vote.accuracy": "A vote is right for",
}
"""Of several releases of the same people, the one that knows most first: what it is called."""
_ALONE: Final = {
    "attack.released-label.accuracy": "last release alone",
    "attack.prior.accuracy": "majority",
}


@dataclass(frozen=True)
class Guess:
    """The best attack on a result's labels.

    Attributes
    ----------
    title : str
        What is counted.
    quantity : Quantity
    text : str
        The number: a percentage, or a squared error.
    blind : tuple of str
        What is reached without the release, in words.
    """

    title: str
    quantity: Quantity
    text: str
    blind: tuple[str, ...]


def best_guess(result: AuditResult, printer: Printer) -> Guess | None:
    """Return the best attack beside what it would reach without the release; None: not scored."""
    error = result.estimate("numeric.best.mse")
    vote = next(filter(None, map(result.estimate, _VOTES)), None) if result.releases else None
    attack = error or result.estimate("attack.best.accuracy") or vote
    if attack is None:
        return None
    quantity, numeric = printer.quantity(attack), error is not None
    blind = _ALONE if attack == vote else _BLIND[numeric]
    found = ((words, result.estimate(i)) for i, words in blind.items())
    known = ((words, printer.quantity(estimate)) for words, estimate in found if estimate)
    told = tuple(f"{words} {q.text if numeric else q.percent}" for words, q in known)
    if numeric:
        return Guess("Best guess’s squared error", quantity, quantity.text, told)
    title = _VOTES.get(attack.id, "Best attack is right for")
    return Guess(title, quantity, quantity.percent, told)
