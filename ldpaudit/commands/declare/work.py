"""The work of ``declare``: check a claim against the file's labels, then write it."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ldpaudit.claim import declaration_of
from ldpaudit.commands.declare.request import DeclareRequest
from ldpaudit.commands.outputs import check_apart, check_place
from ldpaudit.datasets import read_release
from ldpaudit.datasets.batchwise.opening import open_source
from ldpaudit.datasets.declaration import (
    declared_metadata,
    parse_declaration,
    same_claim,
)
from ldpaudit.datasets.formats.tabular import DECLARATION_KEY
from ldpaudit.datasets.labels import read_texts
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.roles import DEFAULT_LABEL
from ldpaudit.datasets.writing.declaring import places_of, write_into
from ldpaudit.errors import InputError, OutputError
from ldpaudit.mechanisms import UNKNOWN, from_declaration
from ldpaudit.mechanisms.coding import DeclaredCoding
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.places import EXPLICIT
from ldpaudit.release import Declaration, Release, VectorDeclaration
from ldpaudit.running.progress import Progress
from ldpaudit.writing import terminable


@dataclass(frozen=True)
class Declared:
    """What a file declares after the command.

    Attributes
    ----------
    request : DeclareRequest
    name : str
        The file's base name.
    label : str or None
        The declared label; None where the file declares nothing.
    mechanism : Mechanism or None
    written : tuple of Path
        The files that were written; none where it was only shown, or declared so already.
    """

    request: DeclareRequest
    name: str
    label: str | None = None
    mechanism: Mechanism | None = None
    written: tuple[Path, ...] = ()


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
    claim = _claim(request)
    present = _present(table, request, stated=claim is not None)
    if claim is None and request.label is None:
        if request.classes is not None or request.output is not None:
            raise _unsaid()
        return _shown(table, request, present)
    label = request.label or (present.label if present else DEFAULT_LABEL)
    progress.step("reading the labels")
    release = _checked(table, label, _stated(claim, present))
    assert release.declaration is not None
    mechanism = from_declaration(release.declaration, release.classes)
    made = Declaration(mechanism.name, dict(mechanism.declaration()), "api")
    if present is not None and present.label == label and same_claim(present.mechanism, made):
        if request.output is None:
            return Declared(request, table.name, label, mechanism)
    elif present is not None and not request.overwrite:
        raise OutputError(
            f"{quoted(table.name)} declares something else already; --overwrite replaces it."
        )
    return Declared(request, table.name, label, mechanism, _written(table, request, made, label))


def _claim(request: DeclareRequest) -> Declaration | None:
    claim = declaration_of(request.claim, request)
    if claim is None:
        return None
    parameters = dict(claim.parameters)
    if claim.name == EXPLICIT:
        parameters |= {key: list(read_texts(parameters[key])) for key in ("classes", "outputs")}
    if request.classes is not None:
        if "classes" in parameters:
            raise InputError("The claim names its classes already; leave out --classes.")
        parameters["classes"] = list(request.classes)
    return replace(claim, parameters=parameters)


def _present(table: Any, request: DeclareRequest, *, stated: bool) -> VectorDeclaration | None:
    """Return the declaration that is there; a broken one may be replaced."""
    if table.declaration is None:
        return None
    try:
        return parse_declaration(table.declaration)
    except InputError:
        if stated and request.overwrite:
            return None
        raise


def _stated(claim: Declaration | None, present: VectorDeclaration | None) -> Declaration:
    if claim is not None:
        return claim
    if present is None:
        raise _unsaid()
    return present.mechanism


def _unsaid() -> InputError:
    return InputError("Say what made the labels: --mechanism NAME with --epsilon or --lambda.")


def _shown(table: Any, request: DeclareRequest, present: VectorDeclaration | None) -> Declared:
    if present is None:
        return Declared(request, table.name)
    if present.mechanism.name == UNKNOWN or "classes" not in present.mechanism.parameters:
        release = _checked(table, present.label, present.mechanism)
        mechanism = from_declaration(present.mechanism, release.classes)
    else:
        mechanism = from_declaration(present.mechanism, ())
    return Declared(request, table.name, present.label, mechanism)


def _checked(table: Any, label: str, claim: Declaration) -> Release:
    """Return the release's labels, read by the claim; the features are left alone."""
    if hasattr(table, "call_label"):
        table.call_label(label)
    if label not in table.names:
        raise missing_column(label, "label", table.names, "name the released label's column.")
    column = next(table.columns((label,), as_text=(label,)))[1]
    labels = pa.table({label: _as_values(column) if table.text else column})
    return read_release(labels, label=label, declaration=claim, coding=DeclaredCoding).release


def _as_values(column: pa.ChunkedArray) -> pa.Array:
    """Return text as the numbers or booleans that it writes, where all of it does."""
    encoded = column.combine_chunks().dictionary_encode()
    values = pa.array(read_texts(encoded.dictionary.to_pylist()))
    return pa.DictionaryArray.from_arrays(encoded.indices, values)


def _written(
    table: Any, request: DeclareRequest, made: Declaration, label: str
) -> tuple[Path, ...]:
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
    entries = {"declared": "afterwards"}
    content = declared_metadata(made, label, entries)[DECLARATION_KEY]
    before = table.stamp()
    with terminable():
        if table.stamp() != before:
            raise InputError("The file changed while it was being read.")
        write_into(table, content, request.output)
    return places
