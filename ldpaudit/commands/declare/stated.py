"""From the options of ``declare`` to what is claimed of each private column."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ldpaudit.claim import classes_of, stated_claim
from ldpaudit.commands.declare.request import DeclareRequest
from ldpaudit.datasets.beside.channel_tables import RELEASED, column_channels
from ldpaudit.errors import InputError
from ldpaudit.options import LabelOptions, check_distinct, parse_label
from ldpaudit.options.labels import KEYS
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration

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
            f"--joint {request.joint} is stated with --epsilon, and by nothing else of a claim."
        )
    if any(one.stated().keys() - {"classes"} for one in columns):
        raise InputError("With --joint a column may state its classes alone.")
    if len(columns) < 2:
        raise InputError("--joint needs at least two columns: --label A --label B.")
    domains = [classes_of(one) for one in columns]
    labels = tuple(LabelDeclaration(one.label) for one in columns)
    parameters = {"domains": domains, "epsilon": request.claim.epsilon}
    return ColumnsDeclaration(labels, Declaration(request.joint, parameters, "options"))
