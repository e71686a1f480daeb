"""The work of ``declare``: claims from options, checked against the file's labels, then written."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ldpaudit.claim import classes_of, stated_claim
from ldpaudit.commands.declare.request import DeclareRequest
from ldpaudit.commands.outputs import check_apart, check_place
from ldpaudit.datasets import read_release
from ldpaudit.datasets.declaration import declared_content, parse_declaration, same_claims
from ldpaudit.datasets.domains import declared_labels
from ldpaudit.datasets.formats.locations import watching
from ldpaudit.datasets.labels import in_order, read_labels, read_texts
from ldpaudit.datasets.names import DEFAULT_LABEL, called, missing_column, quoted
from ldpaudit.datasets.probabilities import RELEASED, column_channels
from ldpaudit.datasets.reading import open_source
from ldpaudit.datasets.writing import declared_places, write_into
from ldpaudit.errors import InputError, OutputError
from ldpaudit.mechanisms import UNKNOWN, from_declaration
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.joint import JointMechanism, joint_family, marginal_claims
from ldpaudit.mechanisms.joint import from_declaration as vector_mechanism
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.options import LabelOptions, check_distinct, parse_label
from ldpaudit.options.labels import KEYS
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration
from ldpaudit.terminal import say
from ldpaudit.work.progress import Progress


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
        "post-randomized: do not publish it along with the released one."
        for one in left
    )


def _written(table: Any, declared: Declared) -> Declared:
    request = declared.request
    places = declared_places(table, request.output)
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


_CLAIM: Final = ("mechanism", "epsilon", "noise", "channel", "labels")
_WORDS: Final = {"mechanism": "mechanism"} | {field: key for key, (field, _) in KEYS.items()}


def named_columns(request: DeclareRequest, names: Sequence[str]) -> tuple[LabelOptions, ...]:
    """Return the private columns that the options name, each with what they say of it alone.

    What is said of no column in particular holds for each that has nothing of its own. Without
    ``--label`` a table of channels names the columns.

    Parameters
    ----------
    request : DeclareRequest
    names : sequence of str
        The columns of the file: a name that holds a colon is one of them.

    Raises
    ------
    InputError
        If a column is named twice, or an option is about none of them.
    """
    shared, words = _shared(request), request.label
    columns = [LabelOptions(label=one) if one in names else parse_label(one) for one in words]
    check_distinct(one.label for one in columns)
    if not columns and request.channel is not None:
        variables = [one.variable for one in column_channels(request.channel, request.by, request)]
        columns = [LabelOptions(label=_column(one, names)) for one in variables if one is not None]
    if request.joint is not None:
        return tuple(columns)
    if shared and columns and all(one.stated() for one in columns):
        word = _WORDS[next(iter(shared))]
        raise InputError(f"--{word} is about none of the columns: each of them has its own claim.")
    if len(columns) > 1 and (one_only := [k for k in ("classes", "labels") if k in shared]):
        raise InputError(
            f"--{one_only[0]} is about one column: write --label NAME:{one_only[0]}=VALUE."
        )
    return tuple(one if one.stated() else replace(one, **shared) for one in columns)


def _shared(request: DeclareRequest) -> dict[str, Any]:
    """Return what the options say of no column in particular."""
    claim = {field: getattr(request.claim, field) for field in _CLAIM}
    values = claim | {"classes": request.classes, "by": request.by}
    return {key: value for key, value in values.items() if value is not None}


def _column(variable: str, names: Sequence[str]) -> str:
    """Return the column that holds the released values of a variable."""
    released = f"{variable}{RELEASED}"
    return released if released in names else variable


def claims_of_options(
    request: DeclareRequest, columns: Sequence[LabelOptions]
) -> ColumnsDeclaration | None:
    """Return what the options claim of these columns, None where they claim nothing.

    Raises
    ------
    InputError
        If they claim something of some columns only, or contradict one another.
    """
    if request.joint is not None:
        return _jointly(request, columns)
    if not any(_claimed(one) for one in columns):
        return None
    return ColumnsDeclaration(tuple(stated_claim(one, request) for one in columns))


def _claimed(column: LabelOptions) -> bool:
    return any(getattr(column, field) is not None for field in (*_CLAIM, "by"))


def _jointly(request: DeclareRequest, columns: Sequence[LabelOptions]) -> ColumnsDeclaration:
    """Return the claim that one mechanism released all columns together.

    The labels of a column that states none are those that occur in the file.
    """
    assert request.joint is not None
    if set(_shared(request)) != {"epsilon"}:
        raise InputError(
            f"--joint {request.joint} is given by --epsilon, and by nothing else of a claim."
        )
    if any(one.stated().keys() - {"classes"} for one in columns):
        raise InputError("With --joint a column may give only its classes.")
    if len(columns) < 2:
        raise InputError("--joint needs at least two columns: --label A --label B.")
    domains = [classes_of(one) for one in columns]
    labels = tuple(LabelDeclaration(one.label) for one in columns)
    parameters = {"domains": domains, "epsilon": request.claim.epsilon}
    return ColumnsDeclaration(labels, Declaration(request.joint, parameters, "options"))


def print_declared(declared: Declared, *, quiet: bool) -> None:
    """Print what the file declares, and what was written; nothing when ``quiet``."""
    if quiet:
        return
    name, claim = quoted(declared.name), declared.claim
    if claim is None:
        say(f"{name} declares nothing. Say what made its labels:")
        say("  ldpaudit declare FILE --label COLUMN --mechanism rr --epsilon 1")
        return
    columns = list(zip(claim.labels, declared.columns, strict=True))
    if declared.whole is None:
        say(f"{name} declares {declared.columns[0].description}.")
    else:
        say(f"{name} declares {len(columns)} private columns:")
    for label, mechanism in columns:
        seen = "" if claim.joint is None else "seen alone: "
        more = "" if declared.whole is None else f": {seen}{mechanism.description}"
        say(f"  {'column':<12} {quoted(label.label)}{more}")
        for what, value in _names(label, mechanism):
            say(f"  {what:<12} {value}")
    if declared.whole is not None:
        say(f"  {'together':<12} {declared.whole.description}")
    _print_written(declared)


def _names(label: LabelDeclaration, mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    if label.by is not None:
        yield "strata by", quoted(label.by)
    stated = mechanism.declaration()
    for one in stated.get("strata", ()):
        yield "stratum", quoted(str(one["value"]))
    for one in stated.get("classes", ()):
        yield "class", quoted(str(one))


def _print_written(declared: Declared) -> None:
    for text in declared.remarks:
        say(f"  {'note':<12} {text}")
    for place in declared.written:
        here = place.is_relative_to(Path.cwd())
        say(f"  {'written':<12} {place.relative_to(Path.cwd()) if here else place}")
    asked = declared.request.claim != type(declared.request.claim)() or declared.request.label
    if asked and not declared.written:
        say("Nothing was written: it is declared so already.")
