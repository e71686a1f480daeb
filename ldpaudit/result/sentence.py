"""The sentence of a verdict in its parts: joined where it is written, taken apart for a page."""

import re
from dataclasses import dataclass
from typing import Final

WARNING: Final = "Warning"
"""A check that failed and does not decide the verdict."""
WAIVED: Final = "A violation is "
"""How the sentence about what somebody answers for begins."""

_BOUND: Final = re.compile(r" \(((?:certified|estimated): at least ε = [^)]*)\)")
_POWER: Final = re.compile(
    r"; ((?:but )?this audit would have noticed.*?)(?=\. (?:Warning\b|But |A )|\.$)"
)
_WARNING: Final = re.compile(rf" {WARNING}( in [^:]*)?: (.*?)\.(?= {WAIVED}|$)")


@dataclass(frozen=True)
class Sentence:
    """What a verdict says; a part that there is nothing to say of is empty.

    ``str`` gives the sentence as it is stored and printed. :meth:`read` gives back its parts, of
    results that an earlier version stored, too.
    """

    verdict: str
    """What it is called, and why: ``"Inconclusive: the audit is too weak"``; no full stop."""
    bound: str = ""
    """What ε is at least, and of which kind that is: ``"certified: at least ε = 0.8"``."""
    power: str = ""
    """What the audit would have noticed: ``"this audit would have noticed …"``."""
    more: str = ""
    """What follows after a semicolon."""
    further: str = ""
    """A sentence of its own, with its full stop."""
    warning: str = ""
    """The reason of a check that failed and does not decide; no full stop."""
    where: str = ""
    """Where the warning holds: ``"in column a"``."""
    waived: str = ""
    """How and why a violation does not count: ``"waived until …"``; no full stop."""

    def __str__(self) -> str:
        bound = f" ({self.bound})" if self.bound else ""
        power, more = (f"; {text}" if text else "" for text in (self.power, self.more))
        parts = [f"{self.verdict}{bound}{power}{more}.", self.further]
        if self.warning:
            where = f" {self.where}" if self.where else ""
            parts.append(f"{WARNING}{where}: {self.warning}.")
        if self.waived:
            parts.append(f"{WAIVED}{self.waived}.")
        return " ".join(filter(None, parts))

    @staticmethod
    def bare(text: str) -> str:
        """Return a sentence that :class:`str` gave without its warning and what is waived."""
        return text.split(f" {WARNING}")[0].split(f" {WAIVED}")[0]

    @classmethod
    def read(cls, text: str) -> "Sentence":
        """Return the parts of a sentence that :class:`str` gave; of any other text one part.

        What follows a semicolon after the power belongs to it, and a waived violation to the
        verdict.
        """
        parts = {}
        if power := _POWER.search(text):
            parts["power"] = power[1]
        if bound := _BOUND.search(text):
            parts["bound"] = bound[1]
        if warning := _WARNING.search(text):
            parts["warning"] = warning[2]
            parts["where"] = (warning[1] or "").strip()
        rest = _BOUND.sub("", _POWER.sub("", text, count=1))
        return cls(_WARNING.sub("", rest, count=1), **parts)
