"""Synthetic rows in the place of true ones: a table, and the label that each was made for."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.commands.privatize.labels.domains import ClassDomain, bare_labels, label_values
from ldpaudit.datasets.formats.batches import read_whole
from ldpaudit.datasets.formats.columns import TEXTS, decoded, is_any, value_type
from ldpaudit.datasets.formats.opening import open_batches
from ldpaudit.datasets.names import called, shown_type
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import IndexArray, IntArray, Label


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """s synthetic rows of a table.

    Parameters
    ----------
    features : pyarrow.Table
        With exactly the released features' columns and types, dictionaries decoded.
    labels : int32 array of shape (s,)
        Codes of the labels that the rows were made for; every label occurs.
    """

    features: pa.Table
    labels: IntArray

    def __len__(self) -> int:
        """Return the number of rows s."""
        return len(self.labels)

    def take(self, rows: IndexArray) -> pa.Table:
        """Return the features of the given rows."""
        return self.features.take(pa.array(rows))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionaries decoded."""
    return pa.schema([pa.field(f.name, value_type(f.type)) for f in schema])


def read_features(
    path: str,
    features: pa.Schema,
    role: str,
    label: str,
    ignored: Collection[str] = (),
    files: FileOptions = AS_FOUND,
) -> pa.Table:
    """Read a table that goes along with the data: the features in order, then the label.

    Parameters
    ----------
    path : str
    features : pyarrow.Schema
        The columns and types that it must have, in any order.
    role : str
        ``"synthetic"`` or ``"public"``, for the messages.
    label : str
        The label's column, returned unchanged.
    ignored : collection of str
        Other columns that it may have: those of the data that are not released.
    files : FileOptions
        How text files are written.

    Raises
    ------
    InputError
        If a column is missing, too many or of another type, or there is no row.
    """
    table = read_whole(open_batches(path, files))
    names = [*features.names, label]
    for name in names:
        if name not in table.schema.names:
            what = "the label's column" if name == label else called(name, names)
            of = "" if name == label else " of the data's features"
            raise InputError(f"The {role} table must have {what}{of}; it has none of that name.")
    surplus = sorted(set(table.schema.names) - set(names) - set(ignored))
    if surplus:
        raise InputError(
            f"The {role} table must have the data's columns only; it has {len(surplus)} more, "
            f"such as {called(surplus[0], table.schema.names)}."
        )
    if not len(table):
        raise InputError(f"The {role} table has no rows.")
    columns = [_as_type(table, field, role) for field in features]
    return pa.table(dict(zip(names, [*columns, table.column(label)], strict=True)))


def _as_type(table: pa.Table, field: pa.Field, role: str) -> pa.ChunkedArray:
    """Return a column in the data's type; only numbers and texts of another width are converted."""
    column, kind = decoded(table.column(field.name)), field.type
    which = f"{called(field.name, table.schema.names).capitalize()} of the {role} table"
    if column.type == kind:
        return column
    if _family(column.type) != _family(kind) and not pa.types.is_null(column.type):
        raise InputError(
            f"{which} must be of the data's type {shown_type(kind)}. Got {shown_type(column.type)} "
            "instead."
        )
    try:
        return column.cast(kind)
    except pa.ArrowException:
        raise InputError(
            f"{which} cannot be turned into the data's type {shown_type(kind)} without a loss."
        ) from None


def _family(kind: pa.DataType) -> str:
    """Return what types may be converted into each other: numbers, texts, or the type itself."""
    if is_any(kind, "integer", "floating"):
        return "number"
    return "text" if is_any(kind, *TEXTS) else str(kind)


def label_codes(column: pa.ChunkedArray, classes: tuple[Label, ...], role: str) -> IntArray:
    """Return the codes of a table's labels, int32 of shape (s,); every class must occur.

    Raises
    ------
    InputError
        If a label is missing or is no class (rows are counted), or a class has no row.
    """
    plain = bare_labels(column.combine_chunks())
    if isinstance(plain, pa.ChunkedArray):
        plain = plain.combine_chunks()
    found = pc.unique(plain.drop_null())
    domain = ClassDomain(classes, found, label_values(found))
    codes = domain.codes(plain)
    foreign = int((codes < 0).sum())
    if foreign:
        raise InputError(
            f"Every label of the {role} table must be one of the {len(classes)} labels; {foreign} "
            f"of {len(codes)} rows hold another value or none."
        )
    lacking = len(classes) - len(np.unique(codes))
    if lacking:
        raise InputError(f"The {role} table must have rows of every label; {lacking} have none.")
    return codes


def read_synthetic(
    path: str,
    features: pa.Schema,
    label: str,
    classes: tuple[Label, ...],
    ignored: Collection[str] = (),
    files: FileOptions = AS_FOUND,
) -> SyntheticRows:
    """Read a user's synthetic table: the features' columns, and the label's.

    Raises
    ------
    InputError
        If its columns, types or labels are not those of the data.
    """
    table = read_features(path, plain_schema(features), "synthetic", label, ignored, files)
    codes = label_codes(table.column(label), classes, "synthetic")
    return SyntheticRows(table.select(features.names), codes)
