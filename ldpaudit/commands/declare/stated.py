"""From the options of ``declare`` to what is claimed of each private column."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ldpaudit.claim import declaration_of
from ldpaudit.commands.declare.request import DeclareRequest
from ldpaudit.datasets.beside.channel_tables import RELEASED, column_channels, only_channels
from ldpaudit.datasets.beside.priors import split_labels
from ldpaudit.errors import InputError, quoted
from ldpaudit.options import ClaimOptions, LabelOptions, check_distinct, parse_label
from ldpaudit.options.labels import KEYS
from ldpaudit.release import Declaration, LabelDeclaration, VectorDeclaration

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
        raise InputError(f"--{word} is about none of the columns: each of them states its claim.")
    if len(columns) > 1 and (one_only := [k for k in ("classes", "labels") if k in shared]):
        raise InputError(f"--{one_only[0]} must follow the --label that it is about.")
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
) -> VectorDeclaration | None:
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
    return VectorDeclaration(tuple(_claim(request, one) for one in columns))


def _claimed(column: LabelOptions) -> bool:
    return any(getattr(column, field) is not None for field in (*_CLAIM, "by"))


def _claim(request: DeclareRequest, one: LabelOptions) -> LabelDeclaration:
    unknown = [key for key in one.stated() if key not in (*_CLAIM, "classes", "by")]
    if unknown:
        raise InputError(
            f"The column {quoted(one.label)}: {_WORDS[unknown[0]]} says how labels are made, and "
            "is no part of a declaration."
        )
    if one.channel is not None:
        return _of_channel(request, one)
    if one.by is not None:
        raise InputError(
            f"The column {quoted(one.label)}: strata (by) need a table with the channel of each "
            "(channel)."
        )
    claim = ClaimOptions(**{field: getattr(one, field) for field in _CLAIM})
    declaration = declaration_of(claim, request)
    if declaration is None:
        raise InputError(
            f"Say what made the labels of {quoted(one.label)}: mechanism with epsilon or lambda, "
            "or a channel."
        )
    return LabelDeclaration(one.label, _with_classes(declaration, one))


def _of_channel(request: DeclareRequest, one: LabelOptions) -> LabelDeclaration:
    others = [key for key in ("mechanism", "epsilon", "noise", "labels") if getattr(one, key)]
    if others and not (others == ["mechanism"] and one.mechanism == "channel"):
        raise InputError("--channel is a whole claim; give no other mechanism, ε or λ with it.")
    assert one.channel is not None
    found = only_channels(column_channels(one.channel, one.by, request), one.label)
    parameters = found.mechanism()
    declaration = Declaration(parameters.pop("name"), parameters, "options")
    return LabelDeclaration(one.label, _with_classes(declaration, one), found.by)


def _with_classes(declaration: Declaration, one: LabelOptions) -> Declaration:
    if one.classes is None:
        return declaration
    if {"classes", "strata"} & declaration.parameters.keys():
        raise InputError("The claim names its classes already; leave out --classes.")
    return replace(declaration, parameters={**declaration.parameters, "classes": classes_of(one)})


def classes_of(one: LabelOptions) -> "list[Any] | None":
    """Return the labels that the options state of a column, None where they state none."""
    if one.classes is None:
        return None
    stated = split_labels(one.classes) if isinstance(one.classes, str) else one.classes
    return list(stated)


def _jointly(request: DeclareRequest, columns: Sequence[LabelOptions]) -> VectorDeclaration:
    """Return the claim that one mechanism released all columns together.

    The labels of a column that states none are those that occur in the file.
    """
    assert request.joint is not None
    if set(_shared(request)) != {"epsilon"}:
        raise InputError(
            f"--joint {request.joint} is stated with --epsilon, and by nothing else of a claim."
        )
    if any(one.stated().keys() - {"classes"} for one in columns):
        raise InputError("With --joint a column may state its classes alone.")
    if len(columns) < 2:
        raise InputError("--joint needs at least two columns: --label A --label B.")
    domains = [classes_of(one) for one in columns]
    labels = tuple(LabelDeclaration(one.label) for one in columns)
    parameters = {"domains": domains, "epsilon": request.claim.epsilon}
    return VectorDeclaration(labels, Declaration(request.joint, parameters, "options"))
