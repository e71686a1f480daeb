"""Which rows have which channel, where the mechanism has one for each value of a public column."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.batchwise.labels import coded_columns
from ldpaudit.datasets.formats.columns import check_complete
from ldpaudit.datasets.formats.opening import FileBatches
from ldpaudit.datasets.formats.tabular import TableSource
from ldpaudit.datasets.labels import forms, positions, read_labels
from ldpaudit.datasets.names import called, missing_column
from ldpaudit.errors import InputError
from ldpaudit.release import Declaration, Label, Strata


def read_strata(
    table: TableSource, by: str | None, claim: Declaration | None, private: Collection[str | None]
) -> tuple[Strata | None, tuple[str, ...]]:
    """Return the stratum of each row as the claim numbers them, and what to know about them.

    Parameters
    ----------
    table : TableSource
    by : str or None
        The public column that tells the strata; None: there are none.
    claim : Declaration or None
        Its ``strata`` name their values, in order; a number matches the text that writes it.
    private : collection of str
        The columns that cannot tell strata, since they are private or name the rows.

    Raises
    ------
    InputError
        If the column is absent or private, a row has no value, or one that is not declared.
    """
    if by is None:
        return None, ()
    if by not in table.names:
        raise missing_column(by, "strata", table.names, typed=False)
    if by in private:
        raise InputError(
            f"The strata must be told by a public column, and {called(by, table.names)} is private."
        )
    declared, which = _declared(claim), called(by, table.names)
    column = _column(table, by)
    check_complete(column.null_count, len(column), f"a value of {which}, its stratum")
    found = read_labels(column, "stratum's", from_text=table.text)
    codes = positions(found.values, declared)[found.codes]
    outside = int((codes < 0).sum())
    if outside:
        raise InputError(
            f"Every row's value of {which} must be that of a declared stratum; {outside} of "
            f"{len(codes)} rows hold another value."
        )
    empty = len(declared) - len(np.unique(codes))
    said = f"{empty} of {len(declared)} declared strata have no row: nothing is measured there."
    return Strata(codes, len(declared)), ((said,) if empty else ())


def _declared(claim: Declaration | None) -> tuple[Label, ...]:
    strata: Any = None if claim is None else claim.parameters.get("strata")
    if not isinstance(strata, list | tuple) or not strata:
        raise InputError("The mechanism by stratum must list its 'strata', each with its value.")
    stated = (one if isinstance(one, Mapping) else {} for one in strata)
    values: tuple[Any, ...] = tuple(one.get("value") for one in stated)
    if not all(isinstance(value, str | int | float) for value in values):
        raise InputError("Each stratum must state its 'value': a text, a number or a boolean.")
    forms(values, "values of the strata")
    return values


def _column(table: TableSource, by: str) -> pa.ChunkedArray:
    if isinstance(table, FileBatches):
        return coded_columns(table, [by])[by]
    return next(table.columns((by,), as_text=(by,)))[1]
