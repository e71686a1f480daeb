"""The work of ``declare``: claims from options, checked against the file's labels, then written."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ldpaudit.claim import classes_of, stated_claim
from ldpaudit.commands.outputs import check_apart, check_place
from ldpaudit.commands.requests import DeclareRequest
from ldpaudit.commands.shell import Said, Told
from ldpaudit.datasets import read_release
from ldpaudit.datasets.declaration import (
    KeyFileError,
    declared_content,
    parse_declaration,
    same_claims,
)
from ldpaudit.datasets.formats.locations import watching
from ldpaudit.datasets.known import EVERY
from ldpaudit.datasets.labels import RELEASED, in_order, labels_of_text, read_labels
from ldpaudit.datasets.names import DEFAULT_LABEL, called, missing_column, quoted
from ldpaudit.datasets.probabilities import column_channels
from ldpaudit.datasets.reading import open_source
from ldpaudit.datasets.writing import declared_places, write_into
from ldpaudit.errors import InputError, OutputError, refuse
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.joint import JointMechanism, joint_family, marginal_claims
from ldpaudit.mechanisms.joint import from_declaration as vector_mechanism
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.options import ClaimOptions, LabelOptions, check_distinct, parse_label
from ldpaudit.options.labels import KEYS
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration
from ldpaudit.work.progress import Progress

_CLAIM: Final = ("mechanism", "epsilon", "noise", "channel", "labels")
_WORDS: Final = {"mechanism": "mechanism"} | {field: key for key, (field, _) in KEYS.items()}
_LISTED: Final = 6
_UNSAID: Final = "Say what made the labels: --mechanism NAME with --epsilon or --lambda."


@dataclass(frozen=True)
class Declared(Told):
    """What a file, by its base ``name``, declares after the command.

    ``claim`` is None where it declares nothing. ``columns`` are the mechanisms of each private
    column alone, ``whole`` that of all together, where there are several. ``written``: the files
    that were written, none where it was only shown, or declared so already. ``left``: columns
    that the released ones seem to have been made from, by their places.
    """

    request: DeclareRequest
    name: str
    claim: ColumnsDeclaration | None = None
    columns: tuple[Mechanism, ...] = ()
    whole: JointMechanism | None = None
    written: tuple[Path, ...] = ()
    left: tuple[str, ...] = ()

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield what the file declares, and what was written; nothing when ``quiet``."""
        name, claim, whole, request = quoted(self.name), self.claim, self.whole, self.request
        if quiet:
            return
        if claim is None:
            yield f"{name} declares nothing. Say what made its labels:"
            yield "  ldpaudit declare FILE --label COLUMN --mechanism rr --epsilon 1"
            return
        alone = f"{name} declares {self.columns[0].description}."
        yield alone if whole is None else f"{name} declares {len(self.columns)} private columns:"
        seen = "" if claim.joint is None else "seen alone: "
        for label, mechanism in zip(claim.labels, self.columns, strict=True):
            what = "" if whole is None else f": {seen}{mechanism.description}"
            yield "column", quoted(label.label) + what
            if label.by is not None:
                yield "strata by", quoted(label.by)
            stated = mechanism.declaration()
            yield from (("stratum", quoted(str(one["value"]))) for one in stated.get("strata", ()))
            yield from (("class", quoted(str(one))) for one in stated.get("classes", ()))
        if whole is not None:
            yield "together", whole.description
        if claim.before:
            more = f" and {len(claim.before) - _LISTED} more" if claim.before[_LISTED:] else ""
            yield "before the noise", ", ".join(map(quoted, claim.before[:_LISTED])) + more
        for before in self.left:
            yield (
                "note",
                f"{before} seems to hold the values before they were post-randomized: do not "
                "publish it along with the released one.",
            )
        for place in self.written:
            here = place.is_relative_to(Path.cwd())
            yield "written", str(place.relative_to(Path.cwd()) if here else place)
        asked = request.claim != ClaimOptions() or request.label or request.before
        if asked and not self.written:
            yield "Nothing was written: it is declared so already."


@watching()  # Checked before its own writing changes the file.
def declare_file(request: DeclareRequest, progress: Progress) -> Declared:
    """Write a declaration, after it was checked against the labels; or return the present one."""
    # One line says what is wrong; nothing is written then (InputError, OutputError).
    table = open_source(request.file, files=request)
    if said := getattr(table, "remark", ""):
        progress.remark(f"Read the file as {said}.")
    claim = {field: getattr(request.claim, field) for field in _CLAIM}
    values = claim | {"classes": request.classes, "by": request.by}
    shared = {key: value for key, value in values.items() if value is not None}
    columns = _named_columns(request, shared, table.names)
    stated = bool(shared) or request.joint is not None or any(one.stated() for one in columns)
    present = _present(table, replaced=stated and request.overwrite)
    if not stated and not columns and not (request.before and present):
        refuse(request.output is not None or bool(request.before), _UNSAID)
        if present is None:
            return Declared(request, table.name)
        # One that was written by hand may contradict the file.
        return replace(_checked(table, request, present, typed=False), claim=present)
    if not columns and (stated or present is None):
        label = DEFAULT_LABEL if present is None else present.label
        columns = _named_columns(replace(request, label=(label,)), shared, (label,))
    progress.step("reading the labels")
    claimed = [one for one in columns if any(getattr(one, f) is not None for f in (*_CLAIM, "by"))]
    if present is not None and not columns:
        wanted = present
    elif request.joint is not None:
        wanted = _jointly(request, shared, columns)
    elif claimed:
        wanted = ColumnsDeclaration(tuple(stated_claim(one, request) for one in columns))
    elif present is None or any(one.stated() for one in columns):
        raise InputError(_UNSAID)
    else:
        wanted = present.only(tuple(one.label for one in columns))
    before = _before(request, table.names, wanted.names, present)
    declared = _checked(table, request, wanted)
    own = declared.claim
    assert own is not None
    if present is not None and (wanted is present or same_claims(present, own)):
        same = before == present.before and request.output is None
        made = present.provenance or own.provenance
        kept = present if wanted is present else replace(own, provenance=made)
        declared = replace(declared, claim=replace(kept, before=before))
        return declared if same else _written(table, declared)
    if present is not None:  # Another claim changes nothing in how the release was made.
        own = replace(own, provenance=_making(present.provenance, declared))
    declared = replace(declared, claim=replace(own, before=before))
    if present is not None and not request.overwrite:
        raise OutputError(
            f"{quoted(table.name)} declares something else already; --overwrite replaces it."
        )
    if present is not None and present.receipt:
        progress.remark(
            "The receipt goes with the declaration that is replaced: ldpaudit verify can no longer "
            "prove this release."
        )
    return _written(table, declared)


def _making(said: Mapping[str, Any], declared: Declared) -> Mapping[str, Any]:
    """Return what was ``said`` of how the release was made, with the ε that is declared now."""
    assert declared.claim is not None
    made = {**said, **declared.claim.provenance}
    epsilon = (declared.whole or declared.columns[0]).epsilon
    if "epsilon" in made and epsilon is not None and math.isfinite(epsilon):
        prior = made["epsilon"]["prior"]
        made["epsilon"] = {"prior": prior, "labels": epsilon, "total": prior + epsilon}
    return made


def _before(
    request: DeclareRequest,
    names: Sequence[str],
    private: Sequence[str],
    present: ColumnsDeclaration | None,
) -> tuple[str, ...]:
    """Return the columns to declare as from before the noise, with those declared already."""
    for name in request.before:
        if name not in (EVERY, *names):
            raise missing_column(name, "to declare as before the noise", names)
        refuse(name in private, "--before must name other columns than the private ones.")
    kept = () if present is None else present.before
    named = names if EVERY in request.before else (*kept, *request.before)
    return tuple(name for name in dict.fromkeys(named) if name not in private)


def _named_columns(
    request: DeclareRequest, shared: Mapping[str, Any], names: Sequence[str]
) -> tuple[LabelOptions, ...]:
    """Return the private columns that the options name, each with what they say of it alone.

    What is ``shared``, said of no column in particular, holds for each that has nothing of its
    own. Without ``--label`` a table of channels names the columns. ``names``: the columns of the
    file; a name that holds a colon is one of them, and so is what sdcMicro calls the released
    one.
    """
    columns = [LabelOptions(label=w) if w in names else parse_label(w) for w in request.label]
    if not columns and request.claim.channel is not None:
        tables = column_channels(request.claim.channel, request.by, request)
        found = [one.variable or one.named for one in tables]
        columns = [LabelOptions(label=one) for one in found if one is not None]
        near = {alias for one in columns for alias in (one.label, one.label + RELEASED)}
        if tables[0].named is not None and not near & {*names}:
            columns = []  # The variable of a single channel need not be called as the file's.
    columns = [
        replace(one, label=one.label + RELEASED)
        if one.label + RELEASED in names and (one.label not in names or not request.label)
        else one
        for one in columns
    ]
    check_distinct(one.label for one in columns)
    if request.joint is not None:
        return tuple(columns)
    if shared and columns and all(one.stated() for one in columns):
        word = _WORDS[next(iter(shared))]
        raise InputError(f"--{word} is about none of the columns: each of them has its own claim.")
    for key in ("classes", "labels"):
        several = len(columns) > 1 and key in shared
        refuse(several, f"--{key} is about one column: write --label NAME:{key}=VALUE.")
    return tuple(one if one.stated() else replace(one, **shared) for one in columns)


def _jointly(
    request: DeclareRequest, shared: Mapping[str, Any], columns: Sequence[LabelOptions]
) -> ColumnsDeclaration:
    """Return the claim that one mechanism released all columns together."""
    # The labels of a column that states none are those that occur in the file.
    name = request.joint or ""
    refuse(
        set(shared) != {"epsilon"},
        f"--joint {name} is given by --epsilon, and by nothing else of a claim.",
    )
    own = any(one.stated().keys() - {"classes"} for one in columns)
    refuse(own, "With --joint a column may give only its classes.")
    refuse(len(columns) < 2, "--joint needs at least two columns: --label A --label B.")
    labels = tuple(LabelDeclaration(one.label) for one in columns)
    parameters = {"domains": [*map(classes_of, columns)], "epsilon": request.claim.epsilon}
    return ColumnsDeclaration(labels, Declaration(name, parameters, "options"))


def _present(table: Any, *, replaced: bool) -> ColumnsDeclaration | None:
    """Return the declaration that is there; a broken one may be ``replaced``."""
    try:
        return None if table.declaration is None else parse_declaration(table.declaration)
    except KeyFileError:
        raise  # With the key a release is proven; nothing replaces it.
    except InputError:
        if replaced:
            return None
        raise


def _checked(
    table: Any, request: DeclareRequest, claim: ColumnsDeclaration, *, typed: bool = True
) -> Declared:
    """Return the claim as it is written, checked against the labels; features are left alone.

    ``typed``: whether the user named its columns; else a file did, and no message repeats them.
    """
    for one in claim.labels:
        if one.label not in table.names and not hasattr(table, "call_label"):
            advice = "name the released label's column."
            raise missing_column(one.label, "label", table.names, advice, typed=typed)
        if one.by is not None and one.by not in table.names:
            raise missing_column(one.by, "strata", table.names, typed=typed)
    joint, alone = claim.joint, [one.mechanism for one in claim.labels]
    if joint is not None:
        if joint.parameters.get("domains") is not None:
            joint_family(joint.name)  # A mistake is reported before any reading.
            domains = [
                _occurring(table, one.label) if stated is None else stated
                for one, stated in zip(claim.labels, joint.parameters["domains"], strict=True)
            ]
            joint = replace(joint, parameters={**joint.parameters, "domains": domains})
            claim = replace(claim, joint=joint)
        alone = [*marginal_claims(joint)]
    classes = []
    for one, mechanism in zip(claim.labels, alone, strict=True):
        if hasattr(table, "call_label"):
            table.call_label(one.label)
        wanted = (one.label,) if one.by is None else (one.label, one.by)
        columns = dict(table.columns(wanted, as_text=wanted))
        values = {name: _as_values(c) if table.text else c for name, c in columns.items()}
        report = read_release(
            pa.table(values),
            label=one.label,
            by=one.by,
            declaration=mechanism,
            private=claim.names,
            coding=DeclaredCoding,
        )
        classes.append(report.release.classes)
    return _built(table, request, claim, classes)


def _occurring(table: Any, label: str) -> list[Any]:
    column = next(table.columns((label,), as_text=(label,)))[1]
    return list(in_order(read_labels(column, "released", from_text=table.text).values))


def _as_values(column: pa.ChunkedArray) -> pa.Array:
    """Return text as the numbers or booleans that it writes, where all of it does."""
    encoded = column.combine_chunks().dictionary_encode()
    values = pa.array(labels_of_text(encoded.dictionary.to_pylist()))
    return pa.DictionaryArray.from_arrays(encoded.indices, values)


def _built(
    table: Any, request: DeclareRequest, claim: ColumnsDeclaration, classes: Sequence[Any]
) -> Declared:
    """Return the mechanisms of a claim, and the claim in their words."""
    whole = None if len(claim.labels) == 1 else vector_mechanism(claim, classes)
    columns: tuple[Mechanism, ...] = () if whole is None else whole.columns
    if whole is None:
        columns = (from_declaration(claim.mechanism, classes[0]),)
    labels = claim.labels
    if claim.joint is None:
        labels = tuple(
            replace(label, mechanism=Declaration(one.name, dict(one.declaration()), "api"))
            for label, one in zip(labels, columns, strict=True)
        )
    written = ColumnsDeclaration(labels, claim.joint, {"declared": "afterwards"})
    before = [one.removesuffix(RELEASED) for one in claim.names if one.endswith(RELEASED)]
    left = [called(one, table.names).capitalize() for one in before if one in table.names]
    return Declared(request, table.name, written, columns, whole, left=tuple(left))


def _written(table: Any, declared: Declared) -> Declared:
    request, claim = declared.request, declared.claim
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
    if claim is not None:
        write_into(table, declared_content(claim), request.output)
    return replace(declared, written=places)
