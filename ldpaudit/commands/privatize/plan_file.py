"""A plan: what to do with each private column of a table, as TOML."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ldpaudit.errors import InputError, did_you_mean, quoted
from ldpaudit.files.documents import parse_toml, read_document, why_unreadable
from ldpaudit.files.limits import POLICY_BYTES
from ldpaudit.options import LabelOptions, label_options

_COLUMN: Final = ("label", "mechanism", "strata")
_FILES: Final = ("prior", "channel")


@dataclass(frozen=True)
class Plan:
    """What a plan states.

    Attributes
    ----------
    labels : tuple of LabelOptions
        At least one.
    joint : str or None
        The mechanism that releases all of them together, as it was typed.
    epsilon : float or None
        Its ε in nats.
    """

    labels: tuple[LabelOptions, ...]
    joint: str | None = None
    epsilon: float | None = None


def read_plan(source: str | os.PathLike[str] | Mapping[str, Any]) -> Plan:
    """Read a plan; the files that it names lie beside it, unless their paths say otherwise.

    ::

        [[labels]]
        label = "income"
        mechanism = "rr"
        epsilon = 1.0

        [[labels]]
        label = "diagnosis"
        by = "region"
        mechanism = "rr"
        strata = { north = { epsilon = 1.0 }, south = { epsilon = 0.5 } }

    Raises
    ------
    InputError
        If it cannot be read, or a key is missing, unknown or not of its kind.
    """
    if isinstance(source, Mapping):
        return _plan(source, None)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"A plan must be a TOML file or a mapping. Got {type(source).__name__} instead."
        )
    path = Path(source)
    try:
        stated = parse_toml(read_document(path, POLICY_BYTES), "A plan")
    except InputError:
        raise
    except (OSError, UnicodeError) as error:
        reason = why_unreadable(error)
        raise InputError(
            f"The plan {quoted(path.name or str(path))} cannot be read: {reason}."
        ) from None
    except ValueError as error:
        raise InputError(f"The plan {quoted(path.name)} is not TOML: {error}.") from None
    return _plan(stated, path.parent)


def _plan(stated: Mapping[str, Any], folder: Path | None) -> Plan:
    _check_keys(stated, ("labels", "joint"), "The plan")
    tables = stated.get("labels")
    if not isinstance(tables, list | tuple) or not tables:
        raise InputError("A plan must list the private columns: a table [[labels]] for each.")
    labels = tuple(_label(table, folder) for table in tables)
    if "joint" not in stated:
        return Plan(labels)
    joint = stated["joint"]
    if not isinstance(joint, Mapping) or not isinstance(joint.get("mechanism"), str):
        raise InputError('The plan\'s [joint] must name its mechanism, such as "joint-rr".')
    _check_keys(joint, ("mechanism", "epsilon"), "The plan's [joint]")
    amount = {key: value for key, value in joint.items() if key == "epsilon"}
    return Plan(labels, joint["mechanism"], label_options("[joint]", amount).epsilon)


def _label(table: Any, folder: Path | None) -> LabelOptions:
    if not isinstance(table, Mapping) or not isinstance(table.get("label"), str):
        raise InputError('Each [[labels]] of a plan must name its column: label = "COLUMN".')
    name, strata = table["label"], table.get("strata", {})
    options = _options(name, table, folder)
    if not isinstance(strata, Mapping) or not all(isinstance(s, Mapping) for s in strata.values()):
        raise InputError(
            f"The column {quoted(name)}: strata must be a table of tables, such as "
            "strata = { north = { epsilon = 1.0 }, south = { epsilon = 0.5 } }."
        )
    channels = strata or options.channel is not None
    if (strata and options.by is None) or (options.by is not None and not channels):
        raise InputError(
            f"The column {quoted(name)} must state 'by', a public column, with 'strata', a channel "
            "for each of its values (or 'channel', a table of them), or neither."
        )
    return replace(options, strata={str(k): _options(name, s, folder) for k, s in strata.items()})


def _options(name: str, table: Mapping[str, Any], folder: Path | None) -> LabelOptions:
    mechanism = table.get("mechanism")
    if mechanism is not None and not isinstance(mechanism, str):
        raise InputError(f"The column {quoted(name)}: mechanism must be a name.")
    settings = {str(k).replace("_", "-"): v for k, v in table.items() if k not in _COLUMN}
    options = label_options(name, settings, mechanism)
    if folder is None:
        return options
    files = {key: getattr(options, key) for key in _FILES}
    return replace(options, **{k: folder / v for k, v in files.items() if v is not None})


def _check_keys(stated: Mapping[str, Any], known: Collection[str], what: str) -> None:
    for key in stated:
        if key not in known:
            otherwise = f"; known are {', '.join(known)}."
            near = did_you_mean(str(key), known, otherwise)
            raise InputError(f"{what} has an unknown key {quoted(str(key))}{near}")
