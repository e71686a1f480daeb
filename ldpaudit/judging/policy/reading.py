"""Reading a policy; every mistake is one line that names the file's line."""

import contextlib
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ldpaudit.errors import InputError, PolicyError, did_you_mean, quoted
from ldpaudit.files.documents import parse_toml, read_document, why_unreadable
from ldpaudit.files.limits import POLICY_BYTES
from ldpaudit.judging.policy.lines import Place, line_of
from ldpaudit.judging.policy.presets import DEFAULT, PREFIX, preset, preset_text
from ldpaudit.judging.policy.sections import OWN, Policy, check_names, keys_of, section_in

_NO_CHECK = (
    "The policy asks for no check, so nothing could be judged. Start from a preset: "
    f'extends = "{DEFAULT}".'
)


class _MistakeError(Exception):
    """What is wrong, and in which line."""

    def __init__(self, message: str, line: int | None = None):
        self.message, self.line = message, line

    def at(self, name: str) -> PolicyError:
        """Return it as an error of a file of that name; of a text without a name if empty."""
        line = "" if self.line is None else f"line {self.line}"
        place = ", ".join(filter(None, (name, line)))
        return PolicyError(f"{place}: {self.message}" if place else self.message)


def default_policy() -> Policy:
    """Return ``ldpaudit:default``."""
    return Policy.model_validate(preset(DEFAULT) | {"name": DEFAULT})


def parse_policy(text: str) -> Policy:
    """Read a policy from TOML text.

    Raises
    ------
    PolicyError
        If it is not TOML, has an unknown key (the nearest known one is named), a value out of
        range, a claim that no release could keep, or no check at all.
    """
    try:
        return _parsed(text)
    except _MistakeError as mistake:
        raise mistake.at("") from None


def load_policy(path: Path | str) -> Policy:
    """Read a policy file, or a preset by its name; errors name the file and the line."""
    if str(path).startswith(PREFIX):
        return _named(parse_policy(preset_text(str(path))), str(path))
    path = Path(path)
    try:
        text = read_document(path, POLICY_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        why = why_unreadable(error)
        raise PolicyError(
            f"The policy file {quoted(path.name or str(path))} cannot be read: {why}."
        ) from None
    try:
        return _named(_parsed(text), path.name)
    except _MistakeError as mistake:
        raise mistake.at(path.name) from None


def _named(policy: Policy, name: str) -> Policy:
    extends = f", which extends {policy.extends}" if policy.extends else ""
    return policy.model_copy(update={"name": f"{name}{extends}"})


def _parsed(text: str) -> Policy:
    if not text.strip():
        raise _MistakeError("The policy is empty; 'ldpaudit policy init' writes one to start from.")
    try:
        stated = parse_toml(text, "A policy")
    except InputError as error:
        raise _MistakeError(str(error)) from None
    except ValueError as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else None
        words = str(error).replace(found[0], "") if found else str(error)
        raise _MistakeError(f"The policy is not valid TOML: {words}.", line) from None
    if "schema" not in stated:
        raise _MistakeError("The policy must state its version: 'schema = 1'.")
    for own in OWN:
        if own in stated:
            raise _MistakeError(f"Unknown key '{own}' in the policy.", line_of(text, own))
    try:
        policy = Policy.model_validate(_extended(stated) | {"sha256": _digest(text)})
    except ValidationError as error:
        place, message = _first_error(error)
        raise _MistakeError(message, line_of(text, place)) from None
    if not policy.checks.asked() and policy.audit.min_rows is None:
        raise _MistakeError(_NO_CHECK, line_of(text, "checks"))
    _check_waivers(policy, text)
    return policy


def _check_waivers(policy: Policy, text: str) -> None:
    """Refuse a waiver that can never count: of a check that is not asked for."""
    known, asked = check_names(), policy.checks.asked()
    for position, waiver in enumerate(policy.waivers):
        if waiver.check in asked:
            continue
        line = line_of(text, ("waivers", position, "check"))
        if waiver.check in known:
            raise _MistakeError(
                f"A waiver names {waiver.check}, which this policy does not ask for: take the "
                "waiver out, or ask for the check.",
                line,
            )
        raise _MistakeError(
            f"A waiver names {quoted(waiver.check)}, which is no check"
            f"{_suggest(waiver.check, known)}",
            line,
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _extended(stated: dict[str, Any]) -> dict[str, Any]:
    """Return what a policy says together with its preset; its own keys win."""
    with contextlib.suppress(PolicyError):  # A preset that there is not is said with its line.
        return _over(preset(str(stated["extends"])), stated) if "extends" in stated else stated
    return stated


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in own.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key] = _over(below, value)
        else:
            merged[key] = value
    return merged


def _first_error(error: ValidationError) -> tuple[Place, str]:
    """Return where the first mistake is, and what is wrong there."""
    # A misspelt key also leaves the right one missing: name the misspelt one.
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    place: Place = tuple(part for part in first["loc"] if part != "lambda_")
    name = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        known = tuple(keys_of(_section(place[:-1])))
        return place, f"Unknown key {quoted(name)} in the policy{_suggest(str(place[-1]), known)}"
    if first["type"] == "missing":
        return place, f"The policy must state '{name}'."
    said = first["msg"].removeprefix("Value error, ").rstrip(".")
    if first["type"] == "value_error" and (said[:1].isupper() or said.startswith("[")):
        return place, said if said.endswith("?") else f"{said}."  # A sentence of its own.
    if first["type"] == "literal_error":
        said = _one_of(place, first["input"])
    return place, f"The policy's '{name}' {_as_rest_of_sentence(said)}."


def _as_rest_of_sentence(said: str) -> str:
    return said if said.startswith(("must", "is")) else f"is not valid: {said}"


def _one_of(place: Place, value: Any) -> str:
    """Return which words a key takes, with the nearest to the one that was given."""
    field = keys_of(_section(place[:-1]))[str(place[-1])]
    kinds = [field.annotation, *get_args(field.annotation)]
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


def _suggest(word: str, known: tuple[str, ...]) -> str:
    return did_you_mean(word, known, f"; it may be one of {', '.join(known)}.")
