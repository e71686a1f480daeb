"""Stored results of schemas 1.0 to 1.4."""

# Numbers of 1.0 have ids only, of which the rest is made here; 1.1 lacks date and next steps; 1.2
# and 1.3 lack fields that have defaults; up to 1.4 numbers of few people were marked as suppressed.

import re
from collections.abc import Iterable
from typing import Any, Final

from ldpaudit.result.estimate import readable

EARLIER: Final = ("1.0", "1.1", "1.2", "1.3", "1.4")
"""The schemas before this one, which can still be read."""
_SECTIONS: Final = {
    "attack": "label-inference",
    "instance_loss": "instance-loss",
    "numeric": "numeric-inference",
    "release_only": "mechanism",
    "test_accuracy": "utility",
    "test_squared_error": "utility",
}
_SCORED: Final = ("attack", "numeric", "aggregates")
_CURVES: Final = ("mechanism.rdp", "mechanism.delta")


def upgraded(result: dict[str, Any]) -> dict[str, Any]:
    """Return an earlier result with the titles, sections and scores of schema 1.1."""
    result = result | {"estimates": without_suppression(result.get("estimates", ()))}
    if result["schema_version"] != EARLIER[0]:
        return result
    kinds = ("estimates", "curves", "histograms")
    parts = {kind: [_upgraded(part) for part in result.get(kind, ())] for kind in kinds}
    return result | parts


def without_suppression(parts: Iterable[Any]) -> list[Any]:
    """Return numbers without the mark of those of few people, which are as they were printed."""
    return [
        {key: value for key, value in part.items() if key != "suppressed"}
        if isinstance(part, dict)
        else part
        for part in parts
    ]


def _upgraded(part: dict[str, Any]) -> dict[str, Any]:
    first, *rest = part["id"].split(".")
    section = "renyi" if part["id"] in _CURVES else _SECTIONS.get(first, first)
    more: dict[str, Any] = {"section": section, "axis": _axis(part, first)}
    if first in _SCORED and len(rest) > 1 and "x" not in part:
        more["score"] = score = _score(*rest)
        whose = "" if score["group"] == "" else f"{readable(score['subject'])}, "
        more["title"] = f"{whose}{score['row']}: {score['column']}"
    return more | part


def _score(subject: str, *rest: str) -> dict[str, str]:
    group = rest[0] if rest[0].startswith(("class-", "slice-")) else ""
    measure = ".".join(rest[1:] if group else rest)
    row = readable(group or subject)
    names = {"subject": subject, "measure": measure, "group": group}
    return names | {"row": row, "column": readable(measure)}


def _axis(part: dict[str, Any], first: str) -> str | None:
    if "x" in part:
        if part["id"].startswith("instance_loss.exceedance"):
            return "share of people"
        return "divergence" if first == "renyi" or part["id"] == _CURVES[0] else None
    named = "epsilon" in re.split(r"[._]", part["id"])
    own = first not in ("power", "synthetic")
    return "epsilon" if named and own and part.get("unit") == "nats" else None
