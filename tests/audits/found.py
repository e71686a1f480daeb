"""What an audit found, held against a table: numbers by id, and words of its notes."""

from collections.abc import Mapping
from typing import Any


def value(result: Any, name: str) -> Any:
    """Return a number of a finding or of a result."""
    return next(e.value for e in result.estimates if e.id == name)


def curve(result: Any, name: str) -> Any:
    return next(c for c in result.curves if c.id == name)


def words(result: Any) -> str:
    return " ".join(note.text for note in result.notes)


def check(result: Any, numbers: Mapping[str, Any], *said: str) -> None:
    """Hold estimates against what they must be, and the notes against what they must say.

    ``ID`` or ``ID@low``: a range, a kind, an exact number, or None where there must be none.
    """
    known = {e.id: e for e in result.estimates}
    for key, expected in numbers.items():
        name, _, end = key.partition("@")
        if expected is None:
            assert name not in known, name
        elif isinstance(expected, str):
            assert known[name].kind == expected, name
        else:
            found = getattr(known[name], end or "value")
            inside = expected[0] <= found <= expected[1] if isinstance(expected, tuple) else False
            assert inside or found == expected, (key, found)
    assert [text for text in said if text not in words(result)] == []
