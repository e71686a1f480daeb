"""The result as JSON: the source of truth for other tools."""

import json
import math
from typing import Any

from ldpaudit.reports.interface import NOWHERE, Surroundings
from ldpaudit.result import AuditResult


class JsonReport:
    """Sorted keys, floats at full precision, infinities as "inf" and "-inf"."""

    @property
    def name(self) -> str:
        """The name in the contract."""
        return "json"

    @property
    def suffix(self) -> str:
        """How the names of its files end."""
        return ".json"

    def render(self, result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:  # noqa: ARG002
        """Return the JSON text, in ASCII so that no character of a name can disturb a reader."""
        return as_json(result.model_dump())


def as_json(value: Any) -> str:
    """Return any part of a result as JSON.

    Raises
    ------
    ValueError
        If a number is NaN.
    """
    return json.dumps(_finite(value), sort_keys=True, indent=2, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Return ``value`` with each infinity as a string and each key of a mapping as one."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Long lists are of numbers, and finite: these are not looked at one by one.
        if set(map(type, value)) == {float} and not any(map(math.isinf, value)):
            return value
        return [_finite(item) for item in value]
    return value
