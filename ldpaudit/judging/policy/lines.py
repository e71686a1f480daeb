"""Where in a TOML text something is written: for errors, and for reports that point to a line."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

Place = tuple[str | int, ...]
"""Keys from the top down; a number counts the tables of an array from 0."""

_ELSEWHERE: Final[dict[str, Place]] = {"min-rows": ("audit", "min_rows")}
"""Checks that are asked for outside of ``[checks]``."""
_LONGEST: Final = 60
"""Lines of one statement, at most: a text or a list over several."""
_MOST_LETTERS: Final = 1 << 18
"""Letters that are parsed to find a line, which nobody waits for in a long text."""
_EACH: Final = 20
"""Letters that take as long as the start of a parser."""


def check_lines(text: str, checks: Iterable[str]) -> dict[str, int]:
    """Return the line of a policy, from 1, that asks for each check.

    One that the policy does not name is at ``extends``, which brings it along, or in the first
    line.
    """
    written: dict[Place, int] = {}
    for place, line in _places(text):
        written.setdefault(place, line)
    rest = written.get(("extends",), 1)
    return {check: written.get(_ELSEWHERE.get(check, ("checks", check)), rest) for check in checks}


def line_of(text: str, place: str | Sequence[str | int]) -> int | None:
    """Return the line, from 1, in which a table or a key is written.

    Parameters
    ----------
    text : str
        TOML.
    place : str or sequence
        Such as ``"checks.claimed-epsilon"`` or ``("waivers", 1, "expires")``.

    Returns
    -------
    int or None
        The line of the nearest table around it where it is not written itself; None where there is
        none.
    """
    wanted = tuple(place.split(".")) if isinstance(place, str) else tuple(place)
    best, line = 0, None
    for found, at in _places(text):
        if len(found) > best and found == wanted[: len(found)]:
            best, line = len(found), at
    return line


def _places(text: str) -> Iterator[tuple[Place, int]]:
    """Yield every table and key with its line."""
    table: Place = ()
    arrays: Counter[str] = Counter()
    for line, statement in _statements(text):
        if not statement.startswith("["):
            yield from ((table + path, line) for path in _paths(tomllib.loads(statement)))
            continue
        (*_, table) = _paths(tomllib.loads(statement))
        if statement.startswith("[["):
            name = str(table[0])
            table = (name, arrays[name])
            arrays[name] += 1
        yield from ((table[:end], line) for end in range(1, len(table) + 1))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each header and each key with its value, and the line that it starts in."""
    lines, start, left = text.splitlines(), 0, _MOST_LETTERS
    while start < len(lines) and left > 0:
        ends = range(start + 1, min(start + _LONGEST, len(lines)) + 1)
        for end in ends:
            statement = "\n".join(lines[start:end])
            left -= len(statement) + _EACH
            if left < 0 or _whole(statement):
                break
        else:
            end = start + 1
        statement = "\n".join(lines[start:end]).strip()
        if statement and not statement.startswith("#") and _whole(statement):
            yield start + 1, statement
        start = end


def _whole(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except (ValueError, RecursionError):
        return False
    return True


def _paths(parsed: Any, above: Place = ()) -> Iterator[Place]:
    """Yield every path of keys, from the top down."""
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            yield (*above, key)
            yield from _paths(value, (*above, key))
    elif isinstance(parsed, list) and above and any(isinstance(one, dict) for one in parsed):
        for position, one in enumerate(parsed):
            yield from _paths(one, (*above, position))
