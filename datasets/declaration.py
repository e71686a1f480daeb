"""The declaration: what a file states about the mechanism that made its labels.

It is JSON under the key ``ldpaudit`` of the Parquet schema metadata::

    {"version": 1, "label": "income",
     "mechanism": {"name": "randomized-response", "classes": ["no", "yes"], "lambda": 0.3},
     "provenance": {"randomness": "operating system", "classes": "declared"}}

The optional ``provenance`` states how the release was made; it is no part of the claim.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.formats.tabular import DECLARATION_KEY
from ldpaudit.datasets.labels import canonical
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.release import Declaration

VERSION = 1
_FIELDS = {"version", "label", "mechanism"}
_AGREEMENT = 1e-6


@dataclass(frozen=True)
class FileDeclaration:
    """A file's declaration: the released label's column, and the mechanism.

    ``provenance`` states how the file was made: ``randomness``, ``classes``, ``prior``, and under
    ``epsilon`` the parts ``prior`` and ``labels`` of a ``total``, in nats.
    """

    label: str
    mechanism: Declaration
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def remarks(self) -> list[str]:
        """Return what the provenance means for the release's reader, in sentences."""
        remarks = []
        if str(self.provenance.get("randomness", "")).startswith("experimental"):
            remarks.append(
                "The release was made as an experiment, with draws that can be repeated: whoever "
                "knows the seed can undo the mechanism."
            )
        generator = self.provenance.get("generator")
        if isinstance(generator, Mapping) and generator.get("trained_on") != "public":
            remarks.append(
                "The generator of the synthetic features was trained on private rows: the "
                "guarantee of double randomized response assumes public ones, or a generator with "
                "a privacy budget of its own."
            )
        parts = self.provenance.get("epsilon", {})
        if parts.get("prior", 0) > 0:
            remarks.append(
                f"The mechanism was designed with a private histogram of the labels, which cost "
                f"another ε = {parts['prior']:.6g} nats: with the claimed ε of the released labels "
                f"the total is ε = {parts['total']:.6g}."
            )
        return remarks


def parse_declaration(content: bytes) -> FileDeclaration:
    """Parse the declaration of a file.

    Raises
    ------
    InputError
        If it is not JSON, of another version, or a field is missing, unknown or of a wrong type.
    """
    try:
        value = json.loads(content, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError(
            "The file's declaration must be valid JSON (key 'ldpaudit', or FILE.ldpaudit.json)."
        ) from None
    if not isinstance(value, dict):
        raise InputError("The file's declaration must be a JSON object.")
    if value.get("version") != VERSION or isinstance(value["version"], bool):
        raise InputError(f"The file's declaration must have version {VERSION}.")
    if set(value) - {"provenance"} != _FIELDS:
        unknown = set(value) - _FIELDS - {"provenance"}
        raise InputError(
            "The file's declaration must have the fields version, label and mechanism; "
            f"{len(_FIELDS - set(value))} missing, {len(unknown)} unknown."
        )
    if not isinstance(value["label"], str):
        raise InputError("The declared label must be a column's name.")
    provenance = _provenance(value.get("provenance", {}))
    return FileDeclaration(value["label"], _mechanism(value["mechanism"]), provenance)


def _provenance(value: Any) -> Mapping[str, Any]:
    """Return the provenance; the parts of ε must add up to its total."""
    if not isinstance(value, dict):
        raise InputError("The declared provenance must be a JSON object.")
    parts = value.get("epsilon")
    if parts is None:
        return value
    named = map(parts.get, ("prior", "labels", "total")) if isinstance(parts, dict) else ()
    numbers = [v for v in named if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < 3 or not math.isclose(
        numbers[0] + numbers[1], numbers[2], rel_tol=_AGREEMENT, abs_tol=_AGREEMENT
    ):
        raise InputError(
            "The declared provenance must state epsilon as prior and labels that add up to total."
        )
    return value


def _mechanism(value: Any) -> Declaration:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InputError("The declared mechanism must be an object with a 'name'.")
    parameters = {key: entry for key, entry in value.items() if key != "name"}
    return Declaration(value["name"], parameters, "file")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("A field occurs twice.")
    return value


def _no_constant(_name: str) -> float:
    raise ValueError("JSON has no NaN and no infinity.")


def agreed(of_file: Declaration | None, given: Declaration | None) -> Declaration | None:
    """Return the claim that a file and the options state together.

    The mechanism's name, and every parameter that both state, must agree (``epsilon`` in one and
    ``lambda`` in the other are compared where the mechanism is built).

    Raises
    ------
    InputError
        If they differ.
    """
    if of_file is None or given is None:
        return of_file or given
    ours, theirs = of_file.parameters, given.parameters
    differ = _different(of_file, given, ours.keys() & theirs.keys())
    if of_file.name != given.name or differ:
        what = "mechanism" if of_file.name != given.name else "mechanism's parameters"
        raise InputError(
            f"The file declares one {what} and the options another; leave out the options, or "
            f"correct the declaration."
        )
    return replace(of_file, parameters={**theirs, **ours})


def same_claim(one: Declaration, other: Declaration) -> bool:
    """Return whether two declarations state the same mechanism with the same parameters."""
    keys = one.parameters.keys() | other.parameters.keys()
    return one.name == other.name and not _different(one, other, keys)


def _different(one: Declaration, other: Declaration, keys: Collection[str]) -> list[str]:
    ours, theirs = one.parameters, other.parameters
    return [key for key in keys if not _same(ours.get(key), theirs.get(key))]


def _same(one: Any, other: Any) -> bool:
    one, other = (
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for value in (one, other)
    )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool | str) or isinstance(other, bool | str):
        plain = isinstance(one, str | int | float) and isinstance(other, str | int | float)
        return plain and canonical(one) == canonical(other)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_AGREEMENT, abs_tol=_AGREEMENT)
    return bool(one == other)


def declare(table: pa.Table, declaration: Declaration, label: str) -> pa.Table:
    """Return the table with the declaration in its schema metadata.

    Parameters
    ----------
    table : pyarrow.Table
        The release.
    declaration : Declaration
        The mechanism; nothing in it may depend on a single row.
    label : str
        The released label's column.

    Raises
    ------
    InputError
        If there is no such column, or a parameter cannot be written as JSON.
    """
    if label not in table.schema.names:
        raise missing_column(label, "label", table.schema.names)
    metadata = declared_metadata(declaration, label)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})


def declared_metadata(
    declaration: Declaration, label: str, provenance: Mapping[str, Any] | None = None
) -> dict[bytes, bytes]:
    """Return the schema metadata that holds a declaration.

    Parameters
    ----------
    declaration : Declaration
        The mechanism; nothing in it may depend on a single row.
    label : str
        The released label's column.
    provenance : mapping, optional
        How the release was made; it too may not depend on a single row.

    Raises
    ------
    InputError
        If a parameter cannot be written as JSON.
    """
    mechanism = {"name": declaration.name, **declaration.parameters}
    content: dict[str, Any] = {"version": VERSION, "label": label, "mechanism": mechanism}
    if provenance:
        content["provenance"] = dict(provenance)
    try:
        text = json.dumps(content, default=_plain, allow_nan=False)
    except (TypeError, ValueError):
        raise InputError(
            f"The parameters of {quoted(declaration.name)} must be texts, finite numbers, "
            f"booleans or lists of them."
        ) from None
    return {DECLARATION_KEY: text.encode()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
