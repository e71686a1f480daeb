"""Strings of a result made harmless for people: no control characters, no endless names."""

import unicodedata
from typing import Final

NAME: Final = 120
"""Characters of a name that a report shows."""
PHRASE: Final = 400
"""Characters of a sentence that a report shows."""

_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSEEN: Final = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})


def shown(text: str, limit: int = PHRASE) -> str:
    """Return ``text`` on one line, at most about ``limit`` characters, nothing hidden in it."""
    # Control characters, lone surrogates and marks that change the direction of writing become
    # visible codes such as ⟨202E⟩; markup is left for the template to escape.
    start = " ".join(text[: limit + 1].split())
    cut = len(text) > limit
    visible = "".join(_visible(letter) for letter in start[:limit])
    return f"{visible}… ({len(text):,} characters)" if cut else visible


def one_line(text: str, limit: int = 1000) -> str:
    """Return a line for a terminal or the log of a pipeline: what it quotes begins no other line.

    Marks of commands that GitHub takes from the middle of a line are broken, too.
    """
    visible = "".join(map(_visible, text[:limit])).replace("##[", "## [")
    return f"{visible}… ({len(text):,} characters)" if len(text) > limit else visible


def printable(text: str) -> str:
    """Return lines for a terminal: whatever would move its cursor or hide a letter is visible."""
    return "".join(one if one in "\n\t" else _visible(one) for one in text)


def name(text: str) -> str:
    """Return a name as :func:`shown`, at the length of a name."""
    return shown(text, NAME)


def brief(text: str, limit: int) -> str:
    """Return a label as :func:`shown`, cut without saying how long it was."""
    return shown(text) if len(text) <= limit else shown(text[: limit - 1]) + "…"


def _visible(letter: str) -> str:
    if letter in _BIDI or unicodedata.category(letter) in _UNSEEN:
        return f"⟨{ord(letter):04X}⟩"
    return letter


def as_identifier(text: str) -> str:
    """Return an id of the result as an id of a page: its dots become dashes."""
    return text.replace(".", "-")
