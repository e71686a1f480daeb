"""CSV files of any dialect, also compressed: the header first, then all columns in one pass."""

import contextlib
import csv
import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ldpaudit.datasets.formats.dialect import LOOKED_AT, SEPARATORS, find_dialect, not_encoded
from ldpaudit.datasets.formats.locations import Located, Location, locate, unreadable
from ldpaudit.datasets.formats.width import check_width, lines_of
from ldpaudit.datasets.names import check_header, check_unique, quoted
from ldpaudit.errors import InputError
from ldpaudit.files.limits import ROW_BYTES
from ldpaudit.options import AS_FOUND, FileOptions

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_FEW, _SOME = 50, 200
"""Rows and columns by which a first line that is none of names is known."""
_WIDE = 1 << 13
_BYTES_PER_FIELD = 1 << 10
"""Of a block for each column of a table of more than 8,192, or it falls into many pieces."""
_ROW_LENGTH = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+):")


class CsvFile(Located):
    """A CSV file with a header; what is not stated of its dialect is found out.

    Attributes
    ----------
    remark : str
        How it is read, where that is not as usual.
    """

    text = True

    def __init__(
        self, location: Location, stated: FileOptions = AS_FOUND, *, named: bool = True
    ) -> None:
        self.location = location
        self.name = location.name
        tabs = ".tsv" in location.paths[0].lower()[-7:]
        with self._reading("utf-8"), self.location.unpacked() as stream:
            sample = bytes(stream.read(LOOKED_AT))
            whole = not stream.read(1)
        self.dialect = find_dialect(
            *(sample, "\t" if tabs else ","), whole=whole, stated=stated, name=self.name
        )
        self.remark = self.dialect.remark
        self.names = tuple(next(iter(self.rows()), ()))
        check_width(len(self.names), self.name)
        if not self.names:
            raise InputError(f"The file {quoted(self.name)} is empty.")
        if named:
            if not stated.header:
                check_header(self.names, [*zip(*self._first_rows(), strict=False)], self.name)
            check_unique(self.names)

    def _first_rows(self) -> list[list[str]]:
        """Return the start of some rows, up to one that cannot be read: its reader says why."""
        rows: list[list[str]] = []
        with contextlib.suppress(InputError):
            for row in islice(self.rows(), 1, _FEW if len(self.names) > _WIDE else _SOME):
                rows += [row[:_FEW]] if row else []
        return rows

    @cached_property
    def declaration(self) -> bytes | None:
        """The declaration beside the file, None without one."""
        return self.location.beside()

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows as text, the header first."""
        with self._reading(), self._open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            lines = lines_of(text, self.name, self.dialect.skipped)
            yield from csv.reader(lines, delimiter=self.dialect.separator, strict=True)

    def columns(
        self, names: Sequence[str], as_text: Collection[str] = ()
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order; those in ``as_text`` as strings."""
        table = self._read(list(names), as_text)
        for position, name in enumerate(names):
            yield name, table.column(position)

    def _read(self, names: list[str], as_text: Collection[str]) -> pa.Table:
        convert = pyarrow.csv.ConvertOptions(
            include_columns=names,
            column_types={name: pa.large_string() for name in as_text},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with self._reading(), self._open() as stream:
            try:
                table = pyarrow.csv.read_csv(
                    stream,
                    read_options=self._blocks(2 * ROW_BYTES),
                    parse_options=self._fields(),
                    convert_options=convert,
                )
            except pa.ArrowInvalid as error:
                raise self._explained(error) from None
        pa.default_memory_pool().release_unused()  # memory that type inference needed
        for name, column in zip(names, table.columns, strict=True):
            if pa.types.is_binary(column.type):
                raise not_encoded(self.name, self.dialect.encoding)
            if pa.types.is_string(column.type):
                self.dialect.numbers.check(column, name, self.name)
        return table

    def _blocks(self, usual: int, *, threads: bool = True) -> Any:
        columns = len(self.names)
        size = usual if columns <= _WIDE else max(usual, _BYTES_PER_FIELD * columns)
        return pyarrow.csv.ReadOptions(
            block_size=size, use_threads=threads, skip_rows=self.dialect.skipped
        )

    def _fields(self) -> Any:
        return pyarrow.csv.ParseOptions(delimiter=self.dialect.separator, newlines_in_values=True)

    def _explained(self, error: pa.ArrowInvalid) -> Exception:
        """Return the error for a row of another length: two numbers of the reader's message."""
        lengths = _ROW_LENGTH.match(str(error))
        if "straddling" in str(error):
            most = max(ROW_BYTES, _BYTES_PER_FIELD * len(self.names)) >> 20
            return InputError(
                f"A row of {quoted(self.name)} is longer than {most} MiB, or a quote is not closed."
            )
        if lengths is None:
            unexplained: Exception = error
            return unexplained
        text = (
            f"Every row of {quoted(self.name)} must have {lengths[1]} fields; one has {lengths[2]}."
        )
        other = len(self.names) == 1 and any(mark in self.names[0] for mark in SEPARATORS)
        return InputError(f"{text} Say what separates them: --separator." if other else text)

    def _open(self) -> Any:
        """Open the file as UTF-8, whatever its encoding."""
        if self.dialect.encoding == "utf-8":
            return self.location.unpacked()
        return pa.transcoding_input_stream(self.location.unpacked(), self.dialect.encoding, "utf-8")

    @contextlib.contextmanager
    def _reading(self, encoding: str = "") -> Iterator[None]:
        encoding = encoding or self.dialect.encoding
        with unreadable(self.name, f"is not a readable CSV file in {encoding.upper()}"):
            try:
                yield
            except UnicodeDecodeError:
                raise not_encoded(self.name, encoding) from None
            except csv.Error as error:
                if "field larger" in str(error):
                    raise InputError(
                        f"A cell of {quoted(self.name)} is longer than {csv.field_size_limit():,} "
                        "characters."
                    ) from None
                raise InputError(
                    f"The file {quoted(self.name)} is not a readable CSV file: its quotes do not "
                    "fit. Mend them, or say what separates its fields with --separator."
                ) from None


def small_csv(
    path: str | os.PathLike[str], what: str, stated: FileOptions = AS_FOUND, *, named: bool = True
) -> tuple[CsvFile, list[list[str]]]:
    """Return a CSV file and its rows without the header and empty lines; ``what`` begins an error.

    Numbers have a decimal point, whatever is in the file. ``named``: whether its first row names
    its columns, for sure.

    Raises
    ------
    InputError
        If it is not one readable CSV file.
    """
    location = locate(path)
    if len(location.paths) > 1 or not location.paths[0].lower().endswith(SUFFIXES):
        raise InputError(f"{what} {quoted(location.name)} must be one CSV file.")
    file = CsvFile(location, stated, named=named)
    cell = file.dialect.numbers.cell
    return file, [list(map(cell, row)) for row in file.rows() if row][1:]
