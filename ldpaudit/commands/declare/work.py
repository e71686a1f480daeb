"""The work of ``declare``: check claims against the file's labels, then write them."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ldpaudit.commands.declare.request import DeclareRequest
from ldpaudit.commands.declare.stated import claims_of_options, named_columns
from ldpaudit.commands.outputs import check_apart, check_place
from ldpaudit.datasets import read_release
from ldpaudit.datasets.batchwise.opening import open_source
from ldpaudit.datasets.beside.channel_tables import RELEASED
from ldpaudit.datasets.declaration import declared_content, parse_declaration, same_claims
from ldpaudit.datasets.domains import declared_labels
from ldpaudit.datasets.formats.watching import watching
from ldpaudit.datasets.labels import in_order, read_labels, read_texts
from ldpaudit.datasets.names import called, missing_column, quoted
from ldpaudit.datasets.roles import DEFAULT_LABEL
from ldpaudit.datasets.writing.declaring import places_of, write_into
from ldpaudit.errors import InputError, OutputError
from ldpaudit.mechanisms import UNKNOWN, from_declaration
from ldpaudit.mechanisms.coding import DeclaredCoding
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.joint import JointMechanism, joint_family, marginal_claims
from ldpaudit.mechanisms.joint import from_declaration as vector_mechanism
from ldpaudit.options import LabelOptions
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration
from ldpaudit.running.progress import Progress


@dataclass(frozen=True)
class Declared:
    """What a file declares after the command.

    Attributes
    ----------
    request : DeclareRequest
    name : str
        The file's base name.
    claim : ColumnsDeclaration or None
        What it declares; None where it declares nothing.
    columns : tuple of Mechanism
        The mechanism of each private column alone.
    whole : JointMechanism or None
        That of all columns together, where there are several.
    written : tuple of Path
        The files that were written; none where it was only shown, or declared so already.
    remarks : tuple of str
        What the file's owner should know, in sentences.
    """

    request: DeclareRequest
    name: str
    claim: ColumnsDeclaration | None = None
    columns: tuple[Mechanism, ...] = ()
    whole: JointMechanism | None = None
    written: tuple[Path, ...] = ()
    remarks: tuple[str, ...] = ()


@watching()  # Checked before its own writing changes the file.
def declare_file(request: DeclareRequest, progress: Progress) -> Declared:
    """Write a declaration, after it was checked against the labels; or return the present one.

    Raises
    ------
    InputError, OutputError
        One line about what is wrong; nothing is written then.
    """
    table = open_source(request.file, files=request)
    if said := getattr(table, "remark", ""):
        progress.remark(f"Read the file as {said}.")
    columns = named_columns(request, table.names)
    stated = request.states or any(one.stated() for one in columns)
    present = _present(table, request, stated=stated)
    if not stated and not columns:
        if request.output is not None:
            raise _unsaid()
        return Declared(request, table.name) if present is None else _shown(table, request, present)
    if not columns:
        label = DEFAULT_LABEL if present is None else present.label
        columns = named_columns(replace(request, label=(label,)), (label,))
    progress.step("reading the labels")
    claim = claims_of_options(request, columns) or _as_before(present, columns)
    declared = _checked(table, request, claim)
    assert declared.claim is not None
    if present is not None and same_claims(present, declared.claim):
        return declared if request.output is None else _written(table, declared)
    if present is not None and not request.overwrite:
        raise OutputError(
            f"{quoted(table.name)} declares something else already; --overwrite replaces it."
        )
    return _written(table, declared)


def _present(table: Any, request: DeclareRequest, *, stated: bool) -> ColumnsDeclaration | None:
    """Return the declaration that is there; a broken one may be replaced."""
    if table.declaration is None:
        return None
    try:
        return parse_declaration(table.declaration)
    except InputError:
        if stated and request.overwrite:
            return None
        raise


def _as_before(
    present: ColumnsDeclaration | None, columns: tuple[LabelOptions, ...]
) -> ColumnsDeclaration:
    """Return what is declared already of the columns that the options only name."""
    if present is None or any(one.stated() for one in columns):
        raise _unsaid()
    return present.only(tuple(one.label for one in columns))


def _unsaid() -> InputError:
    return InputError("Say what made the labels: --mechanism NAME with --epsilon or --lambda.")


def _shown(table: Any, request: DeclareRequest, present: ColumnsDeclaration) -> Declared:
    """Return what is declared; the labels are read only where they are not declared."""
    if all(map(_says_labels, present.labels)):
        return _built(table, request, present, ((),) * len(present.labels))
    return _checked(table, request, present)


def _says_labels(one: LabelDeclaration) -> bool:
    """Return whether the labels of a column are declared; a joint mechanism states its domains."""
    if one.mechanism is None:
        return True
    known = declared_labels(one.mechanism, "classes") is not None
    return known and one.mechanism.name != UNKNOWN


def _checked(table: Any, request: DeclareRequest, claim: ColumnsDeclaration) -> Declared:
    """Return the claim as it is written, checked against the labels; features are left alone."""
    for one in claim.labels:
        if one.label not in table.names and not hasattr(table, "call_label"):
            advice = "name the released label's column."
            raise missing_column(one.label, "label", table.names, advice)
        if one.by is not None and one.by not in table.names:
            raise missing_column(one.by, "strata", table.names)
    claim = _with_domains(table, claim)
    joint = None if claim.joint is None else marginal_claims(claim.joint)
    alone = [one.mechanism for one in claim.labels] if joint is None else joint
    private = claim.names
    classes = tuple(
        _classes(table, replace(one, mechanism=mechanism), private)
        for one, mechanism in zip(claim.labels, alone, strict=True)
    )
    return _built(table, request, claim, classes)


def _classes(table: Any, one: LabelDeclaration, private: tuple[str, ...]) -> tuple[Any, ...]:
    """Return a column's labels, after its released values were read by its claim."""
    if hasattr(table, "call_label"):
        table.call_label(one.label)
    wanted = (one.label,) if one.by is None else (one.label, one.by)
    columns = dict(table.columns(wanted, as_text=wanted))
    cells = {name: _as_values(column) if table.text else column for name, column in columns.items()}
    release = read_release(
        pa.table(cells),
        label=one.label,
        by=one.by,
        declaration=one.mechanism,
        private=private,
        coding=DeclaredCoding,
    ).release
    return release.classes


def _with_domains(table: Any, claim: ColumnsDeclaration) -> ColumnsDeclaration:
    """Return the claim with the labels that occur, where a joint mechanism states none."""
    if claim.joint is None or claim.joint.parameters.get("domains") is None:
        return claim
    joint_family(claim.joint.name)  # A mistake is told before any reading.
    domains = [
        _occurring(table, one.label) if stated is None else stated
        for one, stated in zip(claim.labels, claim.joint.parameters["domains"], strict=True)
    ]
    parameters = {**claim.joint.parameters, "domains": domains}
    return replace(claim, joint=replace(claim.joint, parameters=parameters))


def _occurring(table: Any, label: str) -> list[Any]:
    column = next(table.columns((label,), as_text=(label,)))[1]
    return list(in_order(read_labels(column, "released", from_text=table.text).values))


def _as_values(column: pa.ChunkedArray) -> pa.Array:
    """Return text as the numbers or booleans that it writes, where all of it does."""
    encoded = column.combine_chunks().dictionary_encode()
    values = pa.array(read_texts(encoded.dictionary.to_pylist()))
    return pa.DictionaryArray.from_arrays(encoded.indices, values)


def _built(
    table: Any,
    request: DeclareRequest,
    claim: ColumnsDeclaration,
    classes: tuple[tuple[Any, ...], ...],
) -> Declared:
    """Return the mechanisms of a claim, and the claim in their words."""
    if len(claim.labels) == 1:
        columns: tuple[Mechanism, ...] = (from_declaration(claim.mechanism, classes[0]),)
        whole = None
    else:
        whole = vector_mechanism(claim, classes)
        columns = whole.columns
    made = tuple(Declaration(one.name, dict(one.declaration()), "api") for one in columns)
    labels = claim.labels
    if claim.joint is None:
        pairs = zip(labels, made, strict=True)
        labels = tuple(replace(one, mechanism=mechanism) for one, mechanism in pairs)
    provenance = {"declared": "afterwards"}
    written = ColumnsDeclaration(labels, claim.joint, provenance)
    return Declared(
        request, table.name, written, columns, whole, remarks=_beside(claim.names, table)
    )


def _beside(labels: tuple[str, ...], table: Any) -> tuple[str, ...]:
    """Say it where the column that a released one was made from is in the file as well."""
    before = [one.removesuffix(RELEASED) for one in labels if one.endswith(RELEASED)]
    left = [one for one in before if one in table.names]
    return tuple(
        f"{called(one, table.names).capitalize()} seems to hold the values before they were "
        "post-randomized: do not publish it beside the released one."
        for one in left
    )


def _written(table: Any, declared: Declared) -> Declared:
    request = declared.request
    places = places_of(table, request.output)
    for place in places:
        check_place(place)
        if request.output is not None and os.path.lexists(place) and not request.overwrite:
            raise OutputError(
                f"{quoted(place.name)} exists already and is left as it is; --overwrite "
                "replaces it."
            )
    if request.output is not None:
        check_apart(places, table.location.paths)
    assert declared.claim is not None
    content = declared_content(declared.claim)
    write_into(table, content, request.output)
    return replace(declared, written=places)
