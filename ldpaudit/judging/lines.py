"""Where a policy file asks for each of its checks: for programs that show remarks beside lines."""

import re
from collections.abc import Iterable
from typing import Final

_HEADER: Final = re.compile(r"\s*\[\[?([^\]]+)\]")
_KEY: Final = re.compile(r"\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*)\s*=")
_ELSEWHERE: Final = {"min-rows": "audit.min_rows"}
"""Checks that are asked for outside of ``[checks]``."""


def check_lines(text: str, checks: Iterable[str]) -> dict[str, int]:
    """Return the line of each check, from 1.

    Parameters
    ----------
    text : str
        A valid policy.
    checks : iterable of str
        Ids of checks. One that the file does not name is at ``extends``, which brings it along, or
        in the first line.
    """
    lines = _lines(text)
    rest = lines.get("extends", 1)
    return {check: _line(check, lines) or rest for check in checks}


def _line(check: str, lines: dict[str, int]) -> int | None:
    wanted = _ELSEWHERE.get(check, f"checks.{check}")
    return next(
        (line for key, line in lines.items() if key == wanted or key.startswith(f"{wanted}.")), None
    )


def _lines(text: str) -> dict[str, int]:
    """Return the first line of each table and each key, by its dotted name."""
    table = ""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _plain(header[1])
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault(f"{table}.{_plain(key[1])}".lstrip("."), number)
    return found


def _plain(dotted: str) -> str:
    return ".".join(part.strip(" \t\"'") for part in dotted.split("."))
