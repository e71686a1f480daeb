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
    Waiver,
    keys_of,
    section_in,
)

SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    "claim": ClaimSection,
    "audit": AuditSection,
    "decision": DecisionSection,
    "waivers": Waiver,
}
"""The sections besides the checks."""

WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    (files(__package__) / "words.toml").read_text(encoding="utf-8")
)
"""What keys, checks and rules mean, by kind and name."""


def explain(name: str | None = None) -> str:
    """Return what a check, a key, a section, a preset or a rule of policies means.

    Parameters
    ----------
    name : str, optional
        Such as ``claimed-epsilon``, ``audit.confidence``, ``confidence``, ``waivers``,
        ``ldpaudit:strict``. Default: all of them, in a line each.

    Raises
    ------
    PolicyError
        If there is nothing of that name.
    """
    if name is None:
        return "\n".join(_overview())
    topics = _topics()
    key = name.removeprefix("checks.")
    if key not in topics:
        longer = [full for full in topics if full.endswith(f".{key}")]
        if not longer:
            known = "; 'ldpaudit policy explain' lists all there is."
            raise PolicyError(
                f"A policy has no check or key {quoted(name)}{did_you_mean(key, topics, known)}"
            )
        return "\n".join(f"{full}: {topics[full]}" for full in longer)
    below = [f"  {full}: {text}" for full, text in topics.items() if full.startswith(f"{key}.")]
    return "\n".join([f"{key}: {topics[key]}", *below])


def _overview() -> Iterator[str]:
    for title, members in (
        ("Keys", keys()),
        ("Checks, each a section [checks.ID]", WORDS["checks"]),
        ("Presets, for extends and --policy", PRESETS),
        ("Rules", WORDS["rules"]),
    ):
        yield f"{title}:"
        yield from (f"  {name}: {text}" for name, text in members.items())


def _topics() -> dict[str, str]:
    sections = {name: summary(section) for name, section in SECTIONS.items()}
    sections["min-rows"] = f"{WORDS['keys']['audit.min_rows']} The key is audit.min_rows."
    return {**sections, **keys(), **WORDS["checks"], **check_keys(), **PRESETS, **WORDS["rules"]}


def summary(section: type[BaseModel]) -> str:
    """Return what a section is about: its docstring, in one line, as users read it."""
    return " ".join(cleandoc(section.__doc__ or "").replace("`", "").split())


def keys() -> dict[str, str]:
    """Return every key outside the checks with its words and its default."""
    words = WORDS["keys"]
    inner = {f"{s}.{key}": f for s, model in SECTIONS.items() for key, f in keys_of(model).items()}
    every = keys_of(Policy) | inner
    return {name: words[name] + _default(field) for name, field in every.items() if name in words}


def check_keys() -> dict[str, str]:
    """Return every key of every check with its words and its default."""
    words, found = WORDS["check-keys"], {}
    for check, section in keys_of(ChecksSection).items():
        for key, field in keys_of(section_in(section.annotation) or BaseModel).items():
            name = f"{check}.{key}"
            found[name] = words.get(name, words.get(key, "")) + _default(field)
    return found


def _default(field: Any) -> str:
    """Return the default of a key, where it has one that can be written."""
    value = field.default
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return f' Default: "{value}".' if isinstance(value, str) else f" Default: {value:g}."
