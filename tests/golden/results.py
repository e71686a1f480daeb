"""The recorded results of audits, read as results again."""

from typing import Any

from golden.invocations import RUNS
from golden.recording import load

from ldpaudit.result import AuditResult

NAMES = [one.name for one in RUNS]
"""The recordings that may hold a result."""


def stored(name: str) -> dict[str, Any]:
    """Return a recorded result as it was stored, what recordings leave out filled in."""
    parts = load(name).values()
    result: dict[str, Any] = next(p for p in parts if isinstance(p, dict) and "estimates" in p)
    for part in (result, *result["strata"]):
        part["release"] |= {"sha256": None}
        part["run"] |= {"versions": {}, "seconds": 0.0}
        part["public"]["release"] |= {"sha256": None}
        part["ldpaudit_version"] = "0"
    return result


def recorded(name: str) -> AuditResult:
    """Return a recorded result."""
    return AuditResult.model_validate(stored(name))
