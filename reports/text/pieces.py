"""Several private columns, or several releases of the same people: each in a few words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ldpaudit.reports.text import wording
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult, Check
from ldpaudit.result.answers import warnings_of, with_reason
from ldpaudit.result.harmless import name, shown

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
    """The best attack on a result's labels: what is counted, its number and text.

    ``blind`` is what is reached without the release, in words.
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


_RANKS: Final = {"publish": 0, "not yet": 1, "do not publish": 2}
_GAIN: Final = "companions.attack_gain"
"""What the other released columns add to an attack."""


@dataclass(frozen=True)
class Piece:
    """A private column, a release, or the node that holds them."""

    key: str
    """For instance ``"column-2"`` or ``"release-1/column-2"``; "" for the node itself."""
    result: AuditResult

    @cached_property
    def printer(self) -> Printer:
        """Prints its numbers."""
        return Printer(self.result)

    @property
    def place(self) -> str:
        """Its key as the beginning of ids of a page; empty for the node itself."""
        return self.key.replace("/", "-")

    @property
    def short(self) -> str:
        """What it is called in a line: "column income", "release 2, column income"."""
        numbered = self.key.replace("-", " ").replace("/", ", ")
        label = self.result.release.label
        if self.is_release or not label or not self.key:
            return numbered
        return f"{numbered.rpartition(' ')[0]} {name(label)}"

    @property
    def title(self) -> str:
        """What it is called: "Column income", "Release 1: a.csv"."""
        file = f": {name(self.result.release.name)}" if self.is_release else ""
        return f"{self.short[:1].upper()}{self.short[1:]}{file}"

    @property
    def is_release(self) -> bool:
        """Whether it is one of several releases, not a column."""
        return self.key.rpartition("/")[2].startswith("release")

    def of_check(self, check: Check) -> str:
        """Return the check's name, which no check of another piece has."""
        return f"{self.key}/{check.id}" if self.key else check.id

    @property
    def claimed(self) -> str:
        """Its mechanism and claimed ε."""
        epsilon = f", ε = {self.printer.claim}" if self.printer.claim else ""
        return f"{name(self.result.mechanism.name)}{epsilon}"

    @property
    def found(self) -> dict[str, str]:
        """What was measured of it, by its name; nothing of what was not."""
        guess = best_guess(self.result, self.printer)
        cells = {
            "Certified ε": _in_line(self.printer.measured),
            "" if guess is None else guess.title: _guessed(guess),
            "With the other columns": self._with_others(),
        }
        return {name: text for name, text in cells.items() if text}

    def _with_others(self) -> str:
        gain = self.result.estimate(_GAIN)
        if gain is None:
            return ""
        sign, points = "" if gain.value < 0 else "+", self.printer.quantity(gain).points
        return f"guessed right {sign}{points} points"

    @property
    def verdict(self) -> str:
        """Its verdict, and the gravest check that is not met."""
        return shown(with_reason(wording.headline(self.result), self.result))

    @property
    def look(self) -> str:
        """Its mark: a warning is no tick."""
        warns = self.result.verdict == "pass" and warnings_of(self.result.checks)
        return "inconclusive" if warns else self.result.verdict


def _in_line(quantity: Quantity | None) -> str:
    return "" if quantity is None else f"{quantity.text} {quantity.unit}".strip()


def _guessed(guess: Guess | None) -> str:
    """Return how well the best attack guesses, beside what the features alone reveal."""
    if guess is None:
        return ""
    return f"{guess.text} ({', '.join(guess.blind)})" if guess.blind else guess.text


def pieces(result: AuditResult) -> tuple[Piece, ...]:
    """Return the node, then each of its parts."""
    return tuple(Piece(key, part) for key, part in {"": result, **result.parts}.items())


def named(parts: Sequence[Piece]) -> str:
    """Return several parts in words: "column vote and column income"."""
    *first, last = [piece.short for piece in parts]
    return f"{', '.join(first)} and {last}" if first else last


def every_answer(result: AuditResult) -> Iterator[tuple[Piece, Check]]:
    """Yield each check, and what it is of: the node or a part."""
    for piece in pieces(result):
        yield from ((piece, check) for check in piece.result.checks)


def worst_first(result: AuditResult) -> tuple[Piece, ...]:
    """Return the parts of a result, the worst first; a release before its own columns."""
    return tuple(_ranked(result, ""))


def _ranked(result: AuditResult, before: str) -> Iterator[Piece]:
    parts = [
        Piece(f"{before}{kind}-{position}", part)
        for kind, results in result.held.items()
        for position, part in enumerate(results, 1)
    ]
    for piece in sorted(parts, key=_severity, reverse=True):
        yield piece
        yield from _ranked(piece.result, f"{piece.key}/")


def _severity(piece: Piece) -> tuple[int, bool, float]:
    """Return how bad a part is; among equals, its certified ε."""
    bound = piece.printer.measured
    certified = 0.0 if bound is None else bound.estimate.value
    return _RANKS[piece.result.decision], piece.result.verdict != "pass", certified


def kind_of(parts: Sequence[Piece]) -> str:
    """Return what most parts are that a table lists first: releases, columns or strata."""
    kinds = {piece.key.partition("-")[0] for piece in parts}
    return next(k.capitalize() for k in ("release", "column", "stratum") if k in kinds)


def table_of(parts: Sequence[Piece]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the headers and rows of a table of parts; what none has measured has no column."""
    found = [piece.found for piece in parts]
    measured = list(dict.fromkeys(name for each in found for name in each))
    rows = [
        (piece.title, piece.claimed, *(each.get(name, "–") for name in measured), piece.verdict)
        for piece, each in zip(parts, found, strict=True)
    ]
    return (kind_of(parts), "Claim", *measured, "Verdict"), tuple(rows)
