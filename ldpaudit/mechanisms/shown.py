"""A mechanism's parameters as a result holds them: labels and strata as text."""

from collections.abc import Mapping
from typing import Any, Final

_LABELS: Final = ("classes", "outputs", "domains")


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declaration's parameters, as :meth:`Mechanism.declaration` gives them."""
    return {key: _plain(key, value) for key, value in parameters.items()}


def _plain(key: str, value: Any) -> Any:
    if key in _LABELS and _is_list(value):
        return _texts(value)
    if key in ("strata", "mechanisms") and _is_list(value):
        return [_part(one) for one in value]
    return value


def _part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    if "value" not in part:
        return plain_parameters(part)
    mechanism = plain_parameters(part.get("mechanism", {}))
    return {"value": str(part["value"]), "mechanism": mechanism}


def _texts(values: Any) -> list[Any]:
    return [_texts(one) if _is_list(one) else str(one) for one in values]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
