"""Errors of ldpaudit: each message is one line that a user can act on."""

# A message says what must hold, what was found (a type, a count, the place of a column) and what to
# do. It may repeat what the user typed, and nothing that only a file holds: no class, cell, id or
# path, and a column's name only to correct a misspelt one, where it cannot be a cell. The command
# line turns each into one line and exit status 2.

import re
from collections.abc import Iterable

# Characters of a name that a message shows.
SHOWN_LENGTH = 60


class LdpAuditError(Exception):
    """The base of every error that ldpaudit raises on purpose.

    Its text is one line that a user can act on: what must hold, what was found (a type, a count),
    what to do. It may repeat what the user typed, and never a cell, a row or an id of a file. The
    command line prints it and exits with status 2.
    """


class InputError(LdpAuditError, ValueError):
    """A file, a table, a label or a parameter cannot be used; a ``ValueError``, too."""


class PolicyError(LdpAuditError, ValueError):
    """A policy is malformed or names something that does not exist."""


class InsufficientDataError(LdpAuditError):
    """There are too few rows for this number; an audit that raises it counts as skipped."""


class AttackError(LdpAuditError):
    """An attack of others failed."""


class MissingDependencyError(LdpAuditError, ImportError):
    """An optional library is needed and not installed; an ``ImportError``, too."""


class GeneratorDivergedError(LdpAuditError):
    """Training a generator of synthetic features failed; nothing is kept."""


class OutputError(LdpAuditError, OSError):
    """A result could not be written; an ``OSError``, too."""


def refuse(wrong: object, message: str) -> None:
    """Raise an InputError with this ``message`` where ``wrong`` is true."""
    if wrong:
        raise InputError(message)


def quoted(name: str) -> str:
    """Return a name for a message: in quotes, at most about 60 characters, on one line."""
    # Control characters, line breaks and marks that change the direction of writing are escaped, so
    # a hostile name cannot forge a line or turn a message around.
    start = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in name[: SHOWN_LENGTH + 1]
    )
    return f"'{start[:SHOWN_LENGTH]}{'…' if len(start) > SHOWN_LENGTH else ''}'"


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is spelt most like ``name``, None where none is alike."""
    import difflib

    folded = {c[:SHOWN_LENGTH].casefold(): c for c in candidates}
    close = difflib.get_close_matches(name[:SHOWN_LENGTH].casefold(), folded, n=1)
    return folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str = ".") -> str:
    """Return the end of a sentence: ``"; did you mean 'NAME'?"``, or ``otherwise``."""
    near = nearest(name, candidates)
    return otherwise if near is None else f"; did you mean {quoted(near)}?"


def decimal_point(text: str, otherwise: str = ".") -> str:
    """Return the end of a sentence about what is no number: how a decimal comma is written."""
    found = re.search(r"(?<![\d.,])-?\d+,\d+(?![\d.,])", text)
    return f"; write a decimal point: {found[0].replace(',', '.')}." if found else otherwise
