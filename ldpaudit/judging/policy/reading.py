"""Reading a policy; every mistake is one line that names the file's line, which is found here."""

import contextlib
import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ldpaudit.errors import InputError, PolicyError, decimal_point, did_you_mean, quoted
from ldpaudit.judging.policy.presets import DEFAULT, PREFIX, PRESETS, preset, preset_text
from ldpaudit.judging.policy.sections import (
    ALWAYS_WAIVABLE,
    OWN,
    Policy,
    check_names,
    keys_of,
    section_in,
)
from ldpaudit.work.documents import parse_toml, read_document, why_unreadable
from ldpaudit.work.limits import POLICY_BYTES

Place = tuple[str | int, ...]
"""Keys from the top down; a number counts the tables of an array from 0."""

# Checks that are asked for outside of [checks].
_ELSEWHERE: Final[dict[str, Place]] = {"min-rows": ("audit", "min_rows")}
# Lines of one statement, at most: a text or a list over several.
_LONGEST: Final = 60
# Letters that are parsed to find a line, and how many take as long as the start of a parser.
_MOST_LETTERS, _EACH = 1 << 18, 20


def default_policy() -> Policy:
    """Return ``ldpaudit:default``."""
    return Policy.model_validate(preset(DEFAULT) | {"name": DEFAULT})


def load_policy(path: Path | str) -> Policy:
    """Read a policy file, or a preset by its name; errors name the file and the line."""
    if str(path).startswith(PREFIX):
        name, policy = str(path), parse_policy(preset_text(str(path)))
    else:
        path = Path(path)
        try:
            text = read_document(path, POLICY_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            why = why_unreadable(error)
            named = f"{PREFIX}{path}"
            meant = f" The preset is called {named}." if named in PRESETS else ""
            if isinstance(error, UnicodeError):
                meant = " A policy is a TOML file; 'ldpaudit policy init' writes one to start from."
            raise PolicyError(
                f"The policy file {quoted(path.name or str(path))} cannot be read: {why}.{meant}"
            ) from None
        name, policy = path.name, parse_policy(text, path.name)
    extends = f", which extends {policy.extends}" if policy.extends else ""
    return policy.model_copy(update={"name": f"{name}{extends}"})


def parse_policy(text: str, name: str = "") -> Policy:
    """Read a policy from TOML text; errors name the file, where it has a name."""

    def wrong(message: str, place: str | Sequence[str | int] = (), line: int | None = None) -> Any:
        line = line_of(text, place) if place else line
        at = ", ".join(filter(None, (name, "" if line is None else f"line {line}")))
        return PolicyError(f"{at}: {message}" if at else message)

    if not text.strip():
        raise wrong("The policy is empty; 'ldpaudit policy init' writes one to start from.")
    try:
        stated = parse_toml(text, "A policy")
    except InputError as error:
        raise wrong(str(error)) from None
    except ValueError as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        words = str(error).replace(found[0], "") if found else str(error)
        line = int(found[1]) if found else None
        raise wrong(f"The policy is not valid TOML: {words}.", line=line) from None
    if "schema" not in stated:
        raise wrong("The policy must state its version: 'schema = 1'.")
    for own in OWN:
        if own in stated:
            raise wrong(f"Unknown key '{own}' in the policy.", own)
    base: dict[str, Any] = {}
    with contextlib.suppress(PolicyError):  # A preset that there is not is said with its line.
        base = preset(str(stated["extends"])) if "extends" in stated else {}
    digest = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    try:
        policy = Policy.model_validate(_over(base, stated) | digest)
    except ValidationError as error:
        place, message = _first_error(error)
        raise wrong(message, place) from None
    if not policy.checks.asked() and policy.audit.min_rows is None:
        raise wrong(
            "The policy asks for no check, so nothing could be judged. Start from a preset: "
            f'extends = "{DEFAULT}".',
            "checks",
        )
    for position, waiver in enumerate(policy.waivers):
        if waiver.check not in (*policy.checks.asked(), *ALWAYS_WAIVABLE):
            raise wrong(_never_waived(waiver.check), ("waivers", position, "check"))
    return policy


def _never_waived(check: str) -> str:
    """Return why a waiver can never count: of a check that is not asked for."""
    if check in check_names():
        return (
            f"A waiver names {check}, which this policy does not ask for: take the waiver out, or "
            "ask for the check."
        )
    suggestion = _suggest(check, (*check_names(), *ALWAYS_WAIVABLE))
    return f"A waiver names {quoted(check)}, which is no check{suggestion}"


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a policy says together with its preset; its own keys win."""
    merged = dict(base)
    for key, value in own.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = _over(below, value) if both else value  # type: ignore[arg-type]
    return merged


def _first_error(error: ValidationError) -> tuple[Place, str]:
    """Return where the first mistake is, and what is wrong there."""
    # A misspelt key also leaves the right one missing: name the misspelt one.
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    place: Place = tuple(part for part in first["loc"] if part != "lambda_")
    name, section = ".".join(str(part) for part in place), _section(place[:-1])
    if first["type"] == "extra_forbidden":
        suggestion = _suggest(str(place[-1]), keys_of(section))
        return place, f"Unknown key {quoted(name)} in the policy{suggestion}"
    if first["type"] == "missing":
        return place, f"The policy must state '{name}'."
    words = first["msg"].removeprefix("Value error, ").rstrip(".")
    if first["type"] == "value_error" and (words[:1].isupper() or words.startswith("[")):
        return place, words if words.endswith("?") else f"{words}."  # A sentence of its own.
    if first["type"] == "literal_error":
        words = _one_of(keys_of(section)[str(place[-1])].annotation, first["input"])
    elif words.startswith("Input should"):
        words = f"must{words.removeprefix('Input should')}{_instead(first)}"
    elif not words.startswith(("must", "is")):
        words = f"is not valid: {words}"
    return place, f"The policy's '{name}' {words}{'' if words.endswith(('.', '?')) else '.'}"


def _instead(error: Mapping[str, Any]) -> str:
    """Return what a policy states in place of a number, or of one in range, and what it meant."""
    value, most = error["input"], error.get("ctx", {}).get("lt", error.get("ctx", {}).get("le"))
    if isinstance(value, str) and error["type"].startswith("float_"):
        return decimal_point(value, "")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return f": {value / 100:g}, not {value:g}" if most == 1 < value < 100 else f", not {value:g}"


def _one_of(annotation: Any, value: Any) -> str:
    """Return which words a key takes, with the nearest to the one that was given."""
    kinds = [annotation, *get_args(annotation)]
    choices = [c for kind in kinds if get_origin(kind) is Literal for c in get_args(kind)]
    listed = ", ".join(f'"{c}"' if isinstance(c, str) else str(c) for c in choices)
    words = tuple(c for c in choices if isinstance(c, str))
    near = did_you_mean(value, words, "") if isinstance(value, str) else ""
    return f"must be {'one of ' if len(choices) > 1 else ''}{listed}{near.rstrip('.')}"


def _section(place: Place) -> type[BaseModel]:
    """Return the section at a place."""
    model: type[BaseModel] = Policy
    for part in place:
        field = keys_of(model).get(str(part))
        if field is not None:  # A number counts waivers.
            model = section_in(field.annotation) or model
    return model


def _suggest(word: str, known: Iterable[str]) -> str:
    known = tuple(known)
    return did_you_mean(word, known, f"; it may be one of {', '.join(known)}.")


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
