"""Feature tables as encoded rows and back: exactly the same schema, only values that occur."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.names import called, check_unique, of_column, shown_type
from ldpaudit.errors import InputError
from ldpaudit.release import Float32Array, IntArray
from ldpaudit.synthesis.codecs.arrow_numbers import can_be_numbers, missing_codes
from ldpaudit.synthesis.codecs.categories import CategoryColumn
from ldpaudit.synthesis.codecs.encoded import EncodedRows
from ldpaudit.synthesis.codecs.numbers import NumberColumn

Column = NumberColumn | CategoryColumn
_OF_FEATURES: Final = " of the features"


@dataclass(frozen=True)
class TableCodec:
    """How each column of a table is encoded.

    Attributes
    ----------
    schema : pyarrow.Schema
        That of the fitted table, metadata left out.
    columns : tuple of NumberColumn or CategoryColumn
        One for each field.
    missing : tuple of tuple of int
        For each column of numbers the kinds of missing values that occur (see
        :func:`~ldpaudit.synthesis.codecs.arrow_numbers.missing_codes`); one kind needs no code.
    """

    schema: pa.Schema
    columns: tuple[Column, ...]
    missing: tuple[tuple[int, ...], ...]

    @classmethod
    def fit(cls, table: pa.Table) -> "TableCodec":
        """Learn the columns of a table of n ≥ 1 rows.

        Raises
        ------
        InputError
            If a column cannot be generated, or two have one name.
        """
        check_unique(table.schema.names)
        columns: list[Column] = []
        missing: list[tuple[int, ...]] = []
        for field, column in zip(table.schema, table.columns, strict=True):
            numeric = can_be_numbers(field.type)
            kinds = np.unique(missing_codes(column)) if numeric else np.zeros(0)
            coder = NumberColumn if numeric else CategoryColumn
            with of_column(field.name, table.schema.names, _OF_FEATURES):
                columns.append(coder.fit(column))
            missing.append(tuple(int(kind) for kind in kinds))
        return cls(table.schema.remove_metadata(), tuple(columns), tuple(missing))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of codes of each categorical variable."""
        sizes = []
        for column, kinds in zip(self.columns, self.missing, strict=True):
            if isinstance(column, CategoryColumn):
                sizes.append(column.cardinality)
            elif len(kinds) > 1:
                sizes.append(len(kinds))
        return tuple(sizes)

    @property
    def numbers(self) -> int:
        """The number d of coordinates that are numbers."""
        return sum(c.width for c in self.columns if isinstance(c, NumberColumn))

    def encode(self, table: pa.Table, rng: np.random.Generator) -> EncodedRows:
        """Return the rows of a table with the fitted schema."""
        check_same_schema(self.schema, table.schema, "The table")
        numbers: list[Float32Array] = [np.zeros((table.num_rows, 0), dtype=np.float32)]
        codes: list[IntArray] = []
        for column, kinds, cells in zip(self.columns, self.missing, table.columns, strict=True):
            if isinstance(column, CategoryColumn):
                codes.append(column.encode(cells))
                continue
            numbers.append(column.encode(cells, rng))
            if len(kinds) > 1:
                codes.append(np.searchsorted(kinds, missing_codes(cells)).astype(np.int32))
        return EncodedRows(np.hstack(numbers), _columns(codes, table.num_rows), self.cardinalities)

    def decode(self, rows: EncodedRows, rng: np.random.Generator) -> pa.Table:
        """Return a table of the fitted schema from encoded rows."""
        arrays, number, code = [], 0, 0
        for column, kinds in zip(self.columns, self.missing, strict=True):
            if isinstance(column, CategoryColumn):
                arrays.append(column.decode(rows.codes[:, code], rng))
                code += 1
                continue
            state = np.full(len(rows), kinds[0], dtype=np.int32)
            if len(kinds) > 1:
                state = np.asarray(kinds, dtype=np.int32)[rows.codes[:, code]]
                code += 1
            block = rows.numbers[:, number : number + column.width]
            arrays.append(column.decode(block, state))
            number += column.width
        return pa.Table.from_arrays(arrays, schema=self.schema)


def check_same_schema(wanted: pa.Schema, given: pa.Schema, what: str) -> None:
    """Check that a table has the wanted columns, in that order and of those types.

    Raises
    ------
    InputError
        With the place of the first column that differs.
    """
    for name in wanted.names:
        if name not in given.names:
            expected = called(name, wanted.names)
            raise InputError(f"{what} must have {expected} of the data's features; it has none.")
    extra = [name for name in given.names if name not in wanted.names]
    if extra:
        raise InputError(
            f"{what} must not have {called(extra[0], given.names)}, which is none of the data's; "
            "leave it out."
        )
    for place, (ours, theirs) in enumerate(zip(wanted, given, strict=True), start=1):
        if ours.name != theirs.name:
            raise InputError(
                f"{what} must have its columns in the same order; in place {place} stands another."
            )
        if ours.type != theirs.type:
            raise InputError(
                f"{what}'s column {place} must be of type {shown_type(ours.type)}. "
                f"Got {shown_type(theirs.type)} instead."
            )


def _columns(codes: Sequence[IntArray], rows: int) -> IntArray:
    return np.stack(codes, axis=1) if codes else np.zeros((rows, 0), dtype=np.int32)
