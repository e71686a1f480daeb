"""A declaration as the JSON that a file holds."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.declaration.parsing import SEVERAL, SINGLE
from ldpaudit.datasets.formats.tabular import DECLARATION_KEY
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration


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
    """Return the JSON of a declaration: version 1 for one column without strata, else version 2.

    Raises
    ------
    InputError
        If a parameter cannot be written as JSON.
    """
    first = declaration.labels[0]
    if len(declaration.labels) == 1 and first.by is None:
        content = {"version": SINGLE, **_column(first)}
    else:
        content = {"version": SEVERAL, "labels": [_column(one) for one in declaration.labels]}
    if declaration.joint is not None:
        content["mechanism"] = _mechanism(declaration.joint)
    if declaration.provenance:
        content["provenance"] = dict(declaration.provenance)
    try:
        return json.dumps(content, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError):
        stated = (declaration.joint, *(one.mechanism for one in declaration.labels))
        names = " and ".join(dict.fromkeys(quoted(one.name) for one in stated if one is not None))
        raise InputError(
            f"The parameters of {names} must be texts, finite numbers, booleans or lists of them."
        ) from None


def _column(one: LabelDeclaration) -> dict[str, Any]:
    column: dict[str, Any] = {"label": one.label}
    if one.by is not None:
        column["by"] = one.by
    if one.mechanism is not None:
        column["mechanism"] = _mechanism(one.mechanism)
    return column


def _mechanism(declaration: Declaration) -> dict[str, Any]:
    return {"name": declaration.name, **declaration.parameters}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
