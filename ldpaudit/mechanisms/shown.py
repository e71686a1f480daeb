"""A mechanism's parameters as a result may repeat them: without names of labels and columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_LABELS: Final = ("classes", "outputs", "domains")


def shown_parameters(parameters: Mapping[str, Any], names: bool) -> dict[str, Any]:
    """Return a declaration's parameters with labels, strata and columns numbered.

    Parameters
    ----------
    parameters : mapping
        As :meth:`Mechanism.declaration` returns them.
    names : bool
        Whether names may be shown; then only their form is made plain.
    """
    return {key: _shown(key, value, names) for key, value in parameters.items()}


def _shown(key: str, value: Any, names: bool) -> Any:
    if key in _LABELS and _is_list(value):
        return _numbered(value, names)
    if key in ("strata", "mechanisms") and _is_list(value):
        return [_part(one, i, names) for i, one in enumerate(value, 1)]
    return "a column" if key == "bag" and not names else value


def _part(part: Any, number: int, names: bool) -> Any:
    if not isinstance(part, Mapping):
        return part
    if "value" not in part:
        return shown_parameters(part, names)
    value = str(part["value"]) if names else f"stratum {number}"
    return {"value": value, "mechanism": shown_parameters(part.get("mechanism", {}), names)}


def _numbered(values: Sequence[Any], names: bool) -> list[Any]:
    if values and all(_is_list(one) for one in values):
        return [_numbered(one, names) for one in values]
    return [str(v) if names else f"class {i}" for i, v in enumerate(values, 1)]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
