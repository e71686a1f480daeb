"""Audits of any randomizer by its outputs alone.

The names below are imported when they are first used: the processes in which randomizers run need
none of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpaudit.commands.black_box.auditing import audit_black_box
    from ldpaudit.commands.black_box.command import run_and_write
    from ldpaudit.commands.black_box.outcome import BlackBoxAudit, Claim
    from ldpaudit.commands.black_box.request import Request, parse_inputs

__all__ = [
    "BlackBoxAudit",
    "Claim",
    "Request",
    "audit_black_box",
    "parse_inputs",
    "run_and_write",
]

_PLACES = {
    "BlackBoxAudit": "outcome",
    "Claim": "outcome",
    "Request": "request",
    "audit_black_box": "auditing",
    "parse_inputs": "request",
    "run_and_write": "command",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
