"""From the JSON that a file holds to what it declares.

Version 1 declares one private column::

    {"version": 1, "label": "income",
     "mechanism": {"name": "randomized-response", "classes": ["no", "yes"], "lambda": 0.3},
     "provenance": {"randomness": "operating system", "classes": "declared"}}

Version 2 declares several, each with a mechanism of its own, or all with one joint mechanism; a
column may have a channel for each value of a public column::

    {"version": 2, "labels": [
        {"label": "income", "mechanism": {"name": "randomized-response", "lambda": 0.3}},
        {"label": "diagnosis", "by": "region", "mechanism": {"name": "by-stratum", "strata": [
            {"value": "north", "mechanism": {…}}, {"value": "south", "mechanism": {…}}]}}]}
    {"version": 2, "labels": [{"label": "income"}, {"label": "diagnosis"}],
     "mechanism": {"name": "rs-fd", "domains": [["no", "yes"], ["a", "b", "c"]], "epsilon": 1.0}}

The optional ``provenance`` states how the release was made; it is no part of the claim.
"""

from collections.abc import Collection
from typing import Any, Final

from ldpaudit.datasets.declaration.provenance import checked_provenance
from ldpaudit.errors import InputError
from ldpaudit.files.documents import parse_json
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration

SINGLE: Final = 1
"""The version that declares one private column without strata."""
SEVERAL: Final = 2
"""The version that may declare several, and strata."""
BY_STRATUM: Final = "by-stratum"
"""The mechanism that has a channel for each value of a public column."""
_INVALID: Final = (
    "The file's declaration must be valid JSON (key 'ldpaudit', or FILE.ldpaudit.json)."
)


def parse_declaration(content: bytes) -> ColumnsDeclaration:
    """Parse the declaration of a file, of either version.

    Raises
    ------
    InputError
        If it is not JSON, of another version, or a field is missing, unknown or of a wrong type.
    """
    value = parse_json(content, "The file's declaration", _INVALID, distinct=True)
    if not isinstance(value, dict):
        raise InputError("The file's declaration must be a JSON object.")
    version = value.get("version")
    if isinstance(version, bool) or version not in (SINGLE, SEVERAL):
        raise InputError(f"The file's declaration must have version {SINGLE} or {SEVERAL}.")
    labels, joint = (_single if version == SINGLE else _several)(value)
    return ColumnsDeclaration(labels, joint, checked_provenance(value.get("provenance", {})))


def _single(value: dict[str, Any]) -> tuple[tuple[LabelDeclaration, ...], None]:
    _check_fields(value, ("version", "label", "mechanism"), ("provenance",))
    return (LabelDeclaration(_name(value["label"]), _mechanism(value["mechanism"])),), None


def _several(value: dict[str, Any]) -> tuple[tuple[LabelDeclaration, ...], Declaration | None]:
    _check_fields(value, ("version", "labels"), ("mechanism", "provenance"))
    entries = value["labels"]
    if not isinstance(entries, list) or not entries:
        raise InputError("The declared labels must be a list of one private column or more.")
    joint = _mechanism(value["mechanism"]) if "mechanism" in value else None
    labels = tuple(_column(entry, joint is not None) for entry in entries)
    _check_columns(labels)
    if joint is not None:
        _check_domains(joint, len(labels))
    return labels, joint


def _column(entry: Any, joint: bool) -> LabelDeclaration:
    if not isinstance(entry, dict):
        raise InputError("Each of the declared labels must be a JSON object.")
    if joint and set(entry) != {"label"}:
        raise InputError(
            "Where one mechanism releases all declared labels, each of them must have the field "
            "label alone."
        )
    if not joint:
        _check_fields(entry, ("label", "mechanism"), ("by",), "Each of the declared labels")
    mechanism = None if joint else _mechanism(entry["mechanism"])
    by = _name(entry["by"], "The column of strata ('by')") if "by" in entry else None
    if mechanism is not None and (mechanism.name == BY_STRATUM) != (by is not None):
        raise InputError(
            f"A declared label with the mechanism {BY_STRATUM!r} must name its column of strata "
            "('by'), and no other may."
        )
    return LabelDeclaration(_name(entry["label"]), mechanism, by)


def _check_columns(labels: Collection[LabelDeclaration]) -> None:
    names = {one.label for one in labels}
    if len(names) < len(labels):
        raise InputError(
            f"The declared labels must be different columns; {len(labels) - len(names)} of "
            f"{len(labels)} occur(s) again."
        )
    for one in labels:
        if one.by in names:
            raise InputError("The strata must be a public column; one is declared as private.")


def _check_domains(joint: Declaration, columns: int) -> None:
    domains = joint.parameters.get("domains")
    if not isinstance(domains, list) or not all(isinstance(one, list) for one in domains):
        raise InputError("The declared joint mechanism must list the labels of each column.")
    if columns < 2 or len(domains) != columns:
        raise InputError(
            "A joint mechanism must be declared for at least two columns, with one list of labels "
            f"('domains') for each. Got {len(domains)} list(s) for {columns} column(s)."
        )


def _check_fields(
    value: dict[str, Any],
    needed: Collection[str],
    optional: Collection[str],
    what: str = "The file's declaration",
) -> None:
    missing, unknown = set(needed) - set(value), set(value) - {*needed, *optional}
    if missing or unknown:
        *most, last = needed
        raise InputError(
            f"{what} must have the fields {', '.join(most)} and {last}; "
            f"{len(missing)} missing, {len(unknown)} unknown."
        )


def _name(value: Any, what: str = "The declared label") -> str:
    if not isinstance(value, str):
        raise InputError(f"{what} must be a column's name.")
    return value


def _mechanism(value: Any) -> Declaration:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InputError("The declared mechanism must be an object with a 'name'.")
    parameters = {key: entry for key, entry in value.items() if key != "name"}
    return Declaration(value["name"], parameters, "file")
