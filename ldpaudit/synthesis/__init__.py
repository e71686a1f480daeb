"""Conditional feature generators for double randomized response.

The names below are imported when they are first used: torch and scikit-learn take their time.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpaudit.synthesis.factory import GENERATORS, generator
    from ldpaudit.synthesis.gan.generator import ConditionalGan
    from ldpaudit.synthesis.interface import Generator
    from ldpaudit.synthesis.mixture import ClassMixtures
    from ldpaudit.synthesis.saving import load_generator, save_generator
    from ldpaudit.synthesis.user_table import UserTable

__all__ = [
    "GENERATORS",
    "ClassMixtures",
    "ConditionalGan",
    "Generator",
    "UserTable",
    "generator",
    "load_generator",
    "save_generator",
]

_PLACES = {
    "GENERATORS": "factory",
    "ClassMixtures": "mixture",
    "ConditionalGan": "gan.generator",
    "Generator": "interface",
    "UserTable": "user_table",
    "generator": "factory",
    "load_generator": "saving",
    "save_generator": "saving",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
