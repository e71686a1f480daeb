"""A policy's keys, checks and rules in words; ``docs/policy.md`` is made of the same ones."""

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from inspect import cleandoc
from typing import Any, Final

from pydantic import BaseModel

from ldpaudit.errors import PolicyError, did_you_mean, quoted
from ldpaudit.judging.policy.presets import PRESETS
from ldpaudit.judging.policy.sections import (
    AuditSection,
    ChecksSection,
    ClaimSection,
    DecisionSection,
    Policy,
    ReleaseSection,
    Waiver,
    keys_of,
    section_in,
)

SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    "claim": ClaimSection,
    "release": ReleaseSection,
    "audit": AuditSection,
    "decision": DecisionSection,
    "waivers": Waiver,
}
"""The sections besides the checks."""
CHECKS: Final = {name: field.description for name, field in keys_of(ChecksSection).items()}
"""What each check looks at, and when it fails."""


def _words_in(file: str) -> Mapping[str, str]:
    """Return the texts of a file of this package by their names."""
    return tomllib.loads((files(__package__) / file).read_text(encoding="utf-8"))


RULES: Final = _words_in("rules.toml")
ALWAYS: Final = _words_in("always.toml")
"""The checks that every audit asks, whatever its policy says."""


def explain(name: str | None = None) -> str:
    """Return what a check, a key, a section, a preset or a rule of policies means.

    ``name``: such as ``claimed-epsilon``, ``audit.confidence``, ``confidence``, ``waivers``,
    ``ldpaudit:strict``. Default: all of them, in a line each.
    """
    if name is None:
        return "\n".join(_overview())
    sections = {
        section: " ".join(cleandoc(model.__doc__ or "").replace("`", "").split())
        for section, model in SECTIONS.items()
    }
    sections["min-rows"] = f"{keys()['audit.min_rows']} The key is audit.min_rows."
    topics = {**sections, **keys(), **CHECKS, **ALWAYS, **check_keys(), **PRESETS, **RULES}
    key = name.removeprefix("checks.")
    longer = [full for full in topics if full.endswith(f".{key}")]
    if key in topics:
        below = [f"  {full}: {text}" for full, text in topics.items() if full.startswith(f"{key}.")]
        return "\n".join([f"{key}: {topics[key]}", *below])
    if longer:
        return "\n".join(f"{full}: {topics[full]}" for full in longer)
    known = "; 'ldpaudit policy explain' lists all there is."
    raise PolicyError(
        f"A policy has no check or key {quoted(name)}{did_you_mean(key, topics, known)}"
    )


def _overview() -> Iterator[str]:
    for title, members in (
        ("Keys", keys()),
        ("Checks, each a section [checks.ID]", CHECKS),
        ("Checks that every audit asks", ALWAYS),
        ("Presets, for extends and --policy", PRESETS),
        ("Rules", RULES),
    ):
        yield f"{title}:"
        yield from (f"  {name}: {text}" for name, text in members.items())


def keys() -> dict[str, str]:
    """Return every key outside the checks with its words and its default."""
    inner = {f"{s}.{key}": f for s, model in SECTIONS.items() for key, f in keys_of(model).items()}
    every = keys_of(Policy) | inner
    return {name: _words(field) for name, field in every.items() if field.description}


def check_keys() -> dict[str, str]:
    """Return every key of every check with its words and its default."""
    return {
        f"{check}.{key}": _words(field)
        for check, section in keys_of(ChecksSection).items()
        for key, field in keys_of(section_in(section.annotation) or BaseModel).items()
    }


def _words(field: Any) -> str:
    """Return what a key means, with its default where it has one that can be written."""
    value = field.default
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return str(field.description)
    default = f'"{value}"' if isinstance(value, str) else f"{value:g}"
    return f"{field.description} Default: {default}."
