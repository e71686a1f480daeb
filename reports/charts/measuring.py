"""How wide words are drawn, and lines that fit: no label of a chart is cut.

The reader's font is not known, so letters are taken to be as wide as in the widest of the usual
fonts for pages (DejaVu Sans); in the others the words take less room than is kept for them.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

_NARROW: Final = frozenset(" .,:;'’!|iljIJ·")
_SLIM: Final = frozenset('frt()[]-/"`')
_WIDE: Final = frozenset("mwMWOQG@%…≥≤≠≈−+±=<>~^#&")
_BOLD: Final = 1.12
_HYPHENS: Final = "-_./· "
"""After these a word may be broken."""


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how many pixels a line takes at most, in letters of ``size`` pixels."""
    return sum(map(_em, text)) * size * (_BOLD if bold else 1.0)


def wrapped(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """Return a text in lines no wider than ``room`` pixels, at least one.

    Lines end between words; a word that is too long for a line ends after a hyphen, dot or
    underscore, or anywhere.
    """
    lines = [""]
    for piece in _pieces(text, room, size, bold=bold):
        longer = lines[-1] + piece
        if lines[-1] and width(longer.rstrip(), size, bold=bold) > room:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


def distinct(labels: Iterable[str]) -> list[str]:
    """Return the labels, those that read alike numbered: no two rows are called the same."""
    taken: set[str] = set()
    result = []
    for label in labels:
        shown, count = label, 1
        while shown in taken:
            count += 1
            shown = f"{label} ({count})"
        taken.add(shown)
        result.append(shown)
    return result


def _pieces(text: str, room: float, size: float, *, bold: bool) -> list[str]:
    """Return the parts between which a line may end; each fits into one."""
    parts: list[str] = []
    for word in text.split(" "):
        parts += _fitting(f"{word} ", room, size, bold=bold)
    return parts


def _fitting(word: str, room: float, size: float, *, bold: bool) -> Sequence[str]:
    if width(word.rstrip(), size, bold=bold) <= room:
        return [word]
    parts, start = [], 0
    while width(word[start:].rstrip(), size, bold=bold) > room:
        end = start + 1
        while width(word[start : end + 1], size, bold=bold) <= room:
            end += 1
        # The last place to break in the second half of the line, else its end.
        breaks = [i for i in range(start + (end - start) // 2, end) if word[i] in _HYPHENS]
        end = breaks[-1] + 1 if breaks else end
        parts.append(word[start:end])
        start = end
    return [*parts, word[start:]]


def _em(letter: str) -> float:
    """Return the width of a letter as a share of the letters' size."""
    if unicodedata.combining(letter):
        return 0.0
    if letter in _NARROW:
        return 0.33
    if letter in _SLIM:
        return 0.46
    if letter in _WIDE or unicodedata.east_asian_width(letter) in "WF":
        return 1.02
    return 0.79 if letter.isupper() else 0.645
