"""Where in a TOML text something is written: for errors, and for reports that point to a line."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

Place = tuple[str | int, ...]
"""Keys from the top down; a number counts the tables of an array from 0."""

# Checks that are asked for outside of [checks].
_ELSEWHERE: Final[dict[str, Place]] = {"min-rows": ("audit", "min_rows")}
# Lines of one statement, at most: a text or a list over several.
_LONGEST: Final = 60
# Letters that are parsed to find a line, and how many take as long as the start of a parser.
_MOST_LETTERS, _EACH = 1 << 18, 20


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

    ``place``: such as ``"checks.claimed-epsilon"`` or ``("waivers", 1, "expires")``. Where it is
    not written itself, the line of the nearest table around it; None where there is none.
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
    for line, statement, parsed in _statements(text):
        paths = list(_paths(parsed))
        if not statement.startswith("["):
            yield from ((table + path, line) for path in paths)
            continue
        table = paths[-1]
        if statement.startswith("[["):
            name = str(table[0])
            table = (name, arrays[name])
            arrays[name] += 1
        yield from ((table[:end], line) for end in range(1, len(table) + 1))


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield each header and each key with its value, parsed, and the line that it starts in."""
    lines, start, left = text.splitlines(), 0, _MOST_LETTERS
    while start < len(lines) and left > 0:
        for end in range(start + 1, min(start + _LONGEST, len(lines)) + 1):
            statement = "\n".join(lines[start:end])
            left -= len(statement) + _EACH
            parsed = _parsed(statement) if left >= 0 else None
            if parsed is not None or left < 0:
                break
        else:
            end = start + 1
        if parsed:
            yield start + 1, statement.strip(), parsed
        start = end


def _parsed(statement: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(statement)
    except (ValueError, RecursionError):
        return None


def _paths(parsed: Any, above: Place = ()) -> Iterator[Place]:
    """Yield every path of keys, from the top down."""
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            yield (*above, key)
            yield from _paths(value, (*above, key))
    elif isinstance(parsed, list) and above and any(isinstance(one, dict) for one in parsed):
        for position, one in enumerate(parsed):
            yield from _paths(one, (*above, position))
