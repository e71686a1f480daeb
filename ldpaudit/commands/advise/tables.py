"""Which table and columns are meant: a table with true labels, or a release and its true labels."""

from dataclasses import replace
from typing import Any

from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.datasets.batchwise.opening import open_source
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.names import missing_column
from ldpaudit.errors import InputError
from ldpaudit.options import LabelOptions, parse_label

_DEFAULT = "label"
_ADVICE = "name the private column: --label COLUMN."


def checked(request: AdviseRequest) -> AdviseRequest:
    """Return the request with its private columns named.

    Raises
    ------
    InputError
        If a column is missing, or the true labels come without the features.
    """
    table: Any = open_source(request.data, None, request.files)
    if request.truth is not None:
        truth: Any = open_source(request.truth, None, request.files)
        missing = [name for name in table.names if name not in truth.names]
        if missing:
            raise InputError(
                "The file of true labels (--truth) must be the table that was released, with its "
                f"features: it lacks {len(missing)} of the release's columns. Give that table "
                "itself: ldpaudit advise TABLE --label COLUMN."
            )
    label = request.label or _declared(table)
    for name in (parse_label(text).label for text in label):
        if name not in table.names:
            raise missing_column(name, "label", table.names, _ADVICE)
    return replace(request, label=label)


def _declared(table: Any) -> tuple[str, ...]:
    if table.declaration is None:
        return (_DEFAULT,)
    names = parse_declaration(table.declaration).names
    return tuple(LabelOptions(label=name).text() for name in names)
