"""The presets: policies that come with the package, one TOML file each."""

# In: a name such as ``ldpaudit:strict``. Out: its text, or what it says.

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final

from ldpaudit.errors import PolicyError, did_you_mean, quoted

PREFIX: Final = "ldpaudit:"
DEFAULT: Final = "ldpaudit:default"
PRESETS: Final = {
    DEFAULT: "the claim alone decides; what else may go wrong is warned of",
    "ldpaudit:strict": (
        "the gate before a release: 99 % confidence, more power, and columns that identify people "
        "or reveal the label are violations"
    ),
    "ldpaudit:research": (
        "for experiments and simulated data: only a refuted claim fails; weak audits, seeds and "
        "columns are warned of"
    ),
}
"""What ``extends`` and ``--policy`` may name, each with its purpose."""


def preset_name(name: str) -> str:
    """Return the full name of a preset; ``default`` is short for ``ldpaudit:default``."""
    full = name if name.startswith(PREFIX) else PREFIX + name
    if full not in PRESETS:
        known = f"; there are {', '.join(PRESETS)}."
        raise PolicyError(f"There is no preset {quoted(full)}{did_you_mean(full, PRESETS, known)}")
    return full


def preset_text(name: str) -> str:
    """Return the TOML text of a preset; a name that there is not is a PolicyError."""
    return _text(preset_name(name).removeprefix(PREFIX))


@cache
def _text(name: str) -> str:
    return (files(__package__) / f"{name}.toml").read_text(encoding="utf-8")


def preset(name: str) -> dict[str, Any]:
    """Return what a preset says, as TOML holds it."""
    return tomllib.loads(preset_text(name))


STARTER: Final = _text("starter")
"""What ``ldpaudit policy init`` writes."""
