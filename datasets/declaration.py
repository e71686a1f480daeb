"""The declaration: what a file states about the mechanisms that made its private columns.

JSON under the key ``ldpaudit`` of the Parquet schema metadata, or in a file of its own alongside.
Version 1 declares one private column::

    {"version": 1, "label": "income",
     "mechanism": {"name": "randomized-response", "classes": ["no", "yes"], "lambda": 0.3},
     "before": ["age", "region"],
     "provenance": {"randomness": "operating system", "classes": "declared"}}

Version 2 declares several, each with a mechanism of its own, or all with one joint mechanism; a
column may have a channel for each value of a public column::

    {"version": 2, "labels": [
        {"label": "income", "mechanism": {"name": "randomized-response", "lambda": 0.3}},
        {"label": "diagnosis", "by": "region", "mechanism": {"name": "by-stratum", "strata": [
            {"value": "north", "mechanism": {…}}, {"value": "south", "mechanism": {…}}]}}]}
    {"version": 2, "labels": [{"label": "income"}, {"label": "diagnosis"}],
     "mechanism": {"name": "rs-fd", "domains": [["no", "yes"], ["a", "b", "c"]], "epsilon": 1.0}}

The optional ``before`` names columns that were there before the noise and are released as they
were, the optional ``provenance`` states how the release was made, and the optional ``receipt`` the
commitment to the key of its noise; none of them is part of the claim.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.formats.tables import DECLARATION_KEY, TableSource
from ldpaudit.datasets.labels import canonical
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration
from ldpaudit.release.declaration import AMOUNTS, FaultOfMaking, amounts_differ
from ldpaudit.work.documents import parse_json

# The mechanism that has a channel for each value of a public column.
BY_STRATUM: Final = "by-stratum"
_SINGLE, _SEVERAL = 1, 2
_OPTIONAL: Final = ("before", "provenance", "receipt")
# The field by which the metadata of a file of true labels differ from a declaration.
SECRET: Final = "secret"
# Numbers that differ by less are the same number: of a file and of what somebody types.
_AGREEMENT: Final = 1e-6
# And of two declarations, each computed in full: only rounding makes them differ.
_ROUNDING: Final = 1e-12
_INVALID: Final = (
    "The file's declaration must be valid JSON (key 'ldpaudit', or FILE.ldpaudit.json)."
)


class KeyFileError(InputError):
    """The file is no release: it holds true labels and the key of a release's noise."""


# Gives for a joint mechanism the exact claim about each of its columns alone.
Marginals = Callable[[Declaration], Sequence[Declaration]]


def declares(table: TableSource, names: Collection[str]) -> bool:
    """Return whether a table declares what released some of these columns."""
    declared: Collection[str] = ()
    if table.declaration is not None:
        with suppress(InputError):  # What is broken is its reader's to say.
            declared = parse_declaration(table.declaration).names
    return not {*declared}.isdisjoint(names)


def check_true_labels(table: TableSource, names: Collection[str], what: str) -> None:
    """Check that a table does not declare columns to be released: their labels are noisy.

    ``what`` the table is, for the message (InputError).
    """
    if declares(table, names):
        raise InputError(
            f"{what} is a release: it declares what made its labels, so they are noisy. Give the "
            "true ones."
        )


def parse_declaration(content: bytes) -> ColumnsDeclaration:
    """Parse the declaration of a file, of either version.

    Parameters
    ----------
    content : bytes
        JSON: what Parquet holds under the key ``ldpaudit`` of its schema metadata, or the text of
        ``FILE.ldpaudit.json``.

    Returns
    -------
    ColumnsDeclaration
        The declared columns with the mechanism of each, and what else is declared.

    Raises
    ------
    InputError
        If it is not JSON, of another version, or a field is missing, unknown or of a wrong type.
    """
    value = parse_json(content, "The file's declaration", _INVALID, distinct=True)
    if not isinstance(value, dict):
        raise InputError("The file's declaration must be a JSON object.")
    if SECRET in value:
        raise KeyFileError(
            "This file holds true labels and the key of a release's noise: it is no release, and "
            "not to be published. Give it as --truth."
        )
    version = value.get("version")
    if isinstance(version, bool) or version not in (_SINGLE, _SEVERAL):
        raise InputError(f"The file's declaration must have version {_SINGLE} or {_SEVERAL}.")
    if version == _SINGLE:
        _check_fields(value, ("version", "label", "mechanism"), _OPTIONAL)
        entries = [{key: value.pop(key) for key in ("label", "mechanism")}]
    else:
        _check_fields(value, ("version", "labels"), ("mechanism", *_OPTIONAL))
        entries = value["labels"]
    provenance = _checked_provenance(value.get("provenance", {}))
    receipt = _checked_receipt(value.get("receipt", {}))
    before = value.get("before", [])
    if not isinstance(before, list) or not all(isinstance(name, str) for name in before):
        raise InputError("The declared columns from before the noise must be a list of names.")
    if not isinstance(entries, list) or not entries:
        raise InputError("The declared labels must be a list of one private column or more.")
    joint = _mechanism(value["mechanism"]) if "mechanism" in value else None
    labels = tuple(_column(entry, joint is not None) for entry in entries)
    names = {one.label for one in labels}
    if len(names) < len(labels):
        raise InputError(
            "The declared labels must be different columns; repeated: "
            f"{len(labels) - len(names)} of {len(labels)}."
        )
    if any(one.by in names for one in labels):
        raise InputError("The strata must be a public column; one is declared as private.")
    if joint is not None:
        domains = joint.parameters.get("domains")
        if not isinstance(domains, list) or not all(isinstance(one, list) for one in domains):
            raise InputError("The declared joint mechanism must list the labels of each column.")
        if len(labels) < 2 or len(domains) != len(labels):
            raise InputError(
                "A joint mechanism must be declared for at least two columns, with one list of "
                f"labels ('domains') for each. Got {len(domains)} for {len(labels)}."
            )
    if names & {*before}:
        raise InputError("A private column is declared to be from before the noise.")
    return ColumnsDeclaration(
        labels, joint, provenance, before=tuple(dict.fromkeys(before)), receipt=receipt
    )


def _check_fields(
    value: Any,
    needed: Collection[str],
    optional: Collection[str] = (),
    what: str = "The file's declaration",
) -> None:
    if not isinstance(value, dict):
        raise InputError(f"{what} must be a JSON object.")
    missing, unknown = set(needed) - set(value), set(value) - {*needed, *optional}
    if missing or unknown:
        named = "fields " + " and ".join(needed) if len(needed) > 1 else "field label alone"
        raise InputError(
            f"{what} must have the {named}; {len(missing)} missing, {len(unknown)} unknown."
        )


def _column(entry: Any, joint: bool) -> LabelDeclaration:
    if joint:
        where = "Where one mechanism releases all declared labels, each of them"
        _check_fields(entry, ("label",), (), where)
    else:
        _check_fields(entry, ("label", "mechanism"), ("by",), "Each of the declared labels")
    mechanism = None if joint else _mechanism(entry["mechanism"])
    if mechanism is not None and (mechanism.name == BY_STRATUM) != ("by" in entry):
        raise InputError(
            f"A declared label with the mechanism {BY_STRATUM!r} must name its column of strata "
            "('by'), and no other may."
        )
    for key, what in (("label", "The declared label"), ("by", "The column of strata ('by')")):
        if not isinstance(entry.get(key, ""), str):
            raise InputError(f"{what} must be a column's name.")
    return LabelDeclaration(entry["label"], mechanism, entry.get("by"))


def _mechanism(value: Any) -> Declaration:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InputError("The declared mechanism must be an object with a 'name'.")
    return Declaration(value.pop("name"), value, "file")


def _checked_provenance(value: Any) -> Mapping[str, Any]:
    """Return a declared provenance whose parts of ε, in nats, add up to its total (InputError)."""
    if not isinstance(value, dict):
        raise InputError("The declared provenance must be a JSON object.")
    if "epsilon" in value:
        parts = value["epsilon"]
        named = map(parts.get, ("prior", "labels", "total")) if isinstance(parts, dict) else ()
        numbers = [v for v in named if isinstance(v, int | float) and not isinstance(v, bool)]
        known = len(numbers) == 3 and all(0 <= number < math.inf for number in numbers)
        if not known or not _same(numbers[0] + numbers[1], numbers[2]):
            raise InputError(
                "The declared provenance must state epsilon as prior and labels that add up to "
                "total."
            )
    return value


def _checked_receipt(value: Any) -> Mapping[str, Any]:
    """Return a receipt; of another scheme than this version's nothing but the name is read."""
    if value == {}:
        return {}
    if not isinstance(value, dict) or not isinstance(value.get("scheme"), str):
        raise InputError("The declared receipt must be an object with a 'scheme'.")
    return value


def faults_of_making(provenance: Mapping[str, Any]) -> tuple[FaultOfMaking, ...]:
    """Return what a provenance says against the promise: how the release was made breaks it."""
    faults: list[FaultOfMaking] = []
    if str(provenance.get("randomness", "")).startswith("experimental"):
        faults.append("experiment")
    generator = provenance.get("generator")
    if isinstance(generator, Mapping) and generator.get("trained_on") != "public":
        faults.append("generator")
    return tuple(faults)


def epsilon_of_priors(provenance: Mapping[str, Any]) -> float:
    """Return what private histograms of the labels cost together, in nats, as is declared."""
    return float(provenance.get("epsilon", {}).get("prior", 0.0))


def remarks_on(provenance: Mapping[str, Any]) -> list[str]:
    """Return what a provenance means for the release's reader, in sentences."""
    remarks = []
    parts = provenance.get("epsilon", {})
    if epsilon_of_priors(provenance) > 0:
        remarks.append(
            f"The mechanism was designed with a private histogram of the labels, which cost "
            f"another ε = {parts['prior']:.6g} nats: with the claimed ε of the released labels "
            f"the total is ε = {parts['total']:.6g}."
        )
    return remarks


def declare(table: pa.Table, declaration: Declaration, label: str) -> pa.Table:
    """Return the table with the declaration of one private column in its schema metadata.

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
    content = declared_content(ColumnsDeclaration((LabelDeclaration(label, declaration),)))
    metadata = {**(table.schema.metadata or {}), DECLARATION_KEY: content}
    return table.replace_schema_metadata(metadata)


def declared_content(declaration: ColumnsDeclaration) -> bytes:
    """Return the JSON of a declaration: version 1 for one column without strata, else version 2."""
    content = _stated(declaration)
    if declaration.before:
        content["before"] = list(declaration.before)
    if declaration.provenance:
        content["provenance"] = dict(declaration.provenance)
    if declaration.receipt:
        content["receipt"] = dict(declaration.receipt)
    try:
        return json.dumps(content, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError):
        stated = (declaration.joint, *(one.mechanism for one in declaration.labels))
        names = " and ".join(dict.fromkeys(quoted(one.name) for one in stated if one is not None))
        raise InputError(
            f"The parameters of {names} must be texts, finite numbers, booleans or lists of them."
        ) from None


def _stated(declaration: ColumnsDeclaration) -> dict[str, Any]:
    """Return the claims of a declaration, without its provenance."""

    def mechanism(claim: Declaration | None) -> dict[str, Any]:
        return {} if claim is None else {"mechanism": {"name": claim.name, **claim.parameters}}

    columns = [
        {"label": one.label} | ({} if one.by is None else {"by": one.by}) | mechanism(one.mechanism)
        for one in declaration.labels
    ]
    if len(columns) == 1 and declaration.labels[0].by is None:
        return {"version": _SINGLE, **columns[0]} | mechanism(declaration.joint)
    return {"version": _SEVERAL, "labels": columns} | mechanism(declaration.joint)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def claims_of(
    declared: ColumnsDeclaration, marginals: Marginals | None
) -> tuple[LabelDeclaration, ...]:
    """Return the claim about each column alone: of a joint mechanism its exact marginal."""
    if declared.joint is None:
        return declared.labels
    if marginals is None:
        raise InputError(
            f"One mechanism released all {len(declared.labels)} declared columns together; its "
            "columns cannot be read one by one here."
        )
    claims = zip(declared.labels, marginals(declared.joint), strict=True)
    return tuple(replace(one, mechanism=claim) for one, claim in claims)


def claim_about(
    declared: ColumnsDeclaration, label: str | None, marginals: Marginals | None
) -> LabelDeclaration:
    """Return what is claimed about one column; ``None``: about the only one (InputError)."""
    name = declared.column(label).label
    return next(one for one in claims_of(declared, marginals) if one.label == name)


def agreed(of_file: Declaration | None, given: Declaration | None) -> Declaration | None:
    """Return the claim that a file and the options state together."""
    # The mechanism's name, and every parameter that both state, must agree (``epsilon`` in one and
    # ``lambda`` in the other are compared where the mechanism is built).
    if of_file is None or given is None:
        return of_file or given
    ours, theirs = of_file.parameters, given.parameters
    if given.named and of_file.name != given.name:
        raise claims_differ("mechanism")
    for key in ours.keys() & theirs.keys():
        if not _same(ours[key], theirs[key]):
            raise _parameters_differ(key, ours[key], theirs[key])
    added = tuple(key for key in theirs if key not in ours)
    return replace(of_file, parameters={**theirs, **ours}, added=added)


def _parameters_differ(key: str, ours: Any, theirs: Any) -> InputError:
    """Return the error of a parameter that a file and the options state differently."""
    if key in AMOUNTS and all(isinstance(one, int | float) for one in (ours, theirs)):
        return amounts_differ(*(f"{AMOUNTS[key]} = {one:.6g}" for one in (ours, theirs)))
    return claims_differ("mechanism's parameters")


def claims_differ(what: str) -> InputError:
    """Return the error of a file and options that declare different things."""
    return InputError(
        f"The file declares one {what} and the options another; leave out the options, or "
        f"correct the declaration."
    )


def same_claims(one: ColumnsDeclaration, other: ColumnsDeclaration) -> bool:
    """Return whether two declarations state the same of the same columns, in the same order."""
    # But for rounding: a claim that differs by less than what a reader lets pass is another claim.
    return _same(_stated(one), _stated(other), _ROUNDING)


def _same(one: Any, other: Any, apart: float = _AGREEMENT) -> bool:
    one, other = (
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for value in (one, other)
    )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[k], other[k], apart) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_same(*pair, apart) for pair in pairs)
    plain = isinstance(one, str | int | float) and isinstance(other, str | int | float)
    if isinstance(one, bool | str) or isinstance(other, bool | str):
        return plain and canonical(one) == canonical(other)
    if plain:
        return math.isclose(one, other, rel_tol=apart, abs_tol=apart)
    return bool(one == other)
