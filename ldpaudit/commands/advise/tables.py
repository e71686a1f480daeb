"""Which table and columns are meant: a table with true labels, or a release and its true labels."""

from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.datasets.batchwise.opening import open_source
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats.batches import BatchSource, read_whole
from ldpaudit.datasets.formats.memory_batches import MemoryBatches
from ldpaudit.datasets.formats.opening import open_batches
from ldpaudit.datasets.formats.tabular import bare_schema
from ldpaudit.datasets.names import missing_column
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import traits_of
from ldpaudit.options import LabelOptions, parse_label

JOIN: Final = (
    "The true labels are in a file of their own, so the commands say TABLE: put the true labels "
    "into the table first, in place of the released ones."
)
_DEFAULT: Final = "label"
_ADVICE: Final = "name the private column: --label COLUMN."


def checked(request: AdviseRequest) -> AdviseRequest:
    """Return the request with its private columns named.

    Raises
    ------
    InputError
        If a column is missing, or the true labels fit neither the release nor its features.
    """
    table: Any = open_source(request.data, None, request.files)
    label = request.label or _declared(table)
    names = [parse_label(text).label for text in label]
    for name in names:
        if name not in table.names:
            raise missing_column(name, "label", table.names, _ADVICE)
    apart = False
    if request.truth is not None:
        truth: Any = open_source(request.truth, None, request.files)
        apart = not set(table.names) <= set(truth.names)
        _check_features_kept(table, apart=apart)
    return replace(request, label=label, apart=apart)


def _declared(table: Any) -> tuple[str, ...]:
    if table.declaration is None:
        return (_DEFAULT,)
    names = parse_declaration(table.declaration).names
    return tuple(LabelOptions(label=name).text() for name in names)


def _check_features_kept(table: Any, *, apart: bool) -> None:
    """Refuse the features of a release that changed them, where there are no others."""
    if not apart or table.declaration is None:
        return
    labels = parse_declaration(table.declaration).labels
    kept = (one.mechanism is None or _unchanged(one.mechanism.name) for one in labels)
    if not all(kept):
        raise InputError(
            "This release changed the features, so what to release instead must be told from the "
            "table that it was made from: ldpaudit advise TABLE --label COLUMN."
        )


def _unchanged(mechanism: str) -> bool:
    return traits_of(mechanism).features == "unchanged"


def joined_table(request: AdviseRequest) -> BatchSource | None:
    """Return the release's features with the true labels of another file; None for one file.

    Raises
    ------
    InputError
        If the two have different numbers of rows, or a column of true labels is missing.
    """
    if not request.apart or request.truth is None:
        return None
    source = open_batches(request.data, request)
    table = read_whole(source)
    truth = read_whole(open_batches(request.truth, request))
    if len(truth) != len(table):
        raise InputError(
            f"The true labels (--truth) must be row by row those of the release. They have "
            f"{len(truth):,} rows, and the release {len(table):,}."
        )
    columns = [parse_label(text).label for text in request.label]
    for name in columns:
        table = table.set_column(table.schema.names.index(name), name, _column(truth, name))
    return MemoryBatches(table.cast(bare_schema(table.schema)), source.location)


def _column(truth: pa.Table, name: str) -> pa.ChunkedArray:
    if name in truth.schema.names:
        return truth.column(name)
    if truth.num_columns == 1:
        return truth.column(0)
    raise missing_column(name, "label", truth.schema.names)
