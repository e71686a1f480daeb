"""Readers of released files, and the embedded sample.

The names below are imported when they are first used: pyarrow takes its time.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpaudit.datasets.declaration import FileDeclaration, declare, parse_declaration
    from ldpaudit.datasets.reading import ReadReport, read_channel, read_release
    from ldpaudit.datasets.sample import affairs
    from ldpaudit.datasets.writing import write_release

__all__ = [
    "FileDeclaration",
    "ReadReport",
    "affairs",
    "declare",
    "parse_declaration",
    "read_channel",
    "read_release",
    "write_release",
]

_PLACES = {
    "FileDeclaration": "declaration",
    "ReadReport": "reading",
    "affairs": "sample",
    "declare": "declaration",
    "parse_declaration": "declaration",
    "read_channel": "reading",
    "read_release": "reading",
    "write_release": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
