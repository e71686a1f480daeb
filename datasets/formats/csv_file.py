"""CSV files, also compressed: the header first, then all columns in one pass."""

import csv
import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ldpaudit.datasets.formats.locations import Location, locate, unreadable
from ldpaudit.datasets.formats.width import check_width, lines_of
from ldpaudit.datasets.names import NOT_COMMAS, check_unique, other_separator, quoted
from ldpaudit.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_BLOCK = 1 << 23
_WIDE = 1 << 13
_BYTES_PER_FIELD = 1 << 10
"""Of a block for each column of a table of more than 8,192, or it falls into many pieces."""
_ROW_LENGTH = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+):")


class CsvFile:
    """A CSV file in UTF-8 with a header, separated by commas (``.tsv``: by tabs)."""

    declaration: bytes | None = None
    text = True

    def __init__(self, location: Location) -> None:
        self._location = location
        self.name = location.name
        self._separator = "\t" if ".tsv" in location.paths[0].lower()[-7:] else ","
        self.names = tuple(next(iter(self.rows()), ()))
        check_width(len(self.names), self.name)
        if not self.names:
            raise InputError(f"The file {quoted(self.name)} is empty.")
        check_unique(self.names)

    def sha256(self) -> str:
        """Return the digest of the file's bytes, compressed or not."""
        return self._location.sha256()

    def stamp(self) -> tuple[Any, ...]:
        """Return size and time of the file."""
        return self._location.stamp()

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows as text, the header first."""
        with self._reading(), self._open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            lines = lines_of(text, self.name)
            yield from csv.reader(lines, delimiter=self._separator, strict=True)

    def columns(
        self, names: Sequence[str], as_text: Collection[str] = ()
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order; those in ``as_text`` as strings."""
        table = self._read(list(names), as_text)
        for position, name in enumerate(names):
            yield name, table.column(position)

    def _read(self, names: list[str], as_text: Collection[str]) -> pa.Table:
        parse = pyarrow.csv.ParseOptions(delimiter=self._separator, newlines_in_values=True)
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
                    read_options=pyarrow.csv.ReadOptions(block_size=self._block(_BLOCK)),
                    parse_options=parse,
                    convert_options=convert,
                )
            except pa.ArrowInvalid as error:
                raise self._explained(error) from None
        pa.default_memory_pool().release_unused()  # memory that type inference needed
        for name, kind in zip(names, table.schema.types, strict=True):
            if pa.types.is_binary(kind):
                raise InputError(f"The column {quoted(name)} must be text in UTF-8.")
        return table

    def _explained(self, error: pa.ArrowInvalid) -> Exception:
        """Return the error for a row of another length: two numbers of the reader's message."""
        lengths = _ROW_LENGTH.match(str(error))
        if lengths is None:
            unexplained: Exception = error
            return unexplained
        text = (
            f"Every row of {quoted(self.name)} must have {lengths[1]} fields; one has {lengths[2]}."
        )
        return InputError(f"{text} {NOT_COMMAS}" if other_separator(self.names) else text)

    def _block(self, usual: int) -> int:
        columns = len(self.names)
        return usual if columns <= _WIDE else max(usual, _BYTES_PER_FIELD * columns)

    def _open(self) -> Any:
        path = self._location.paths[0]
        compression = "gzip" if path.lower().endswith(".gz") else None
        return self._location.filesystem.open_input_stream(path, compression=compression)

    def _reading(self) -> Any:
        return unreadable(self.name, "is not a readable CSV file in UTF-8")


def small_csv(path: str | os.PathLike[str], what: str) -> tuple[CsvFile, list[list[str]]]:
    """Return a CSV file and its rows without the header and empty lines; ``what`` begins an error.

    Raises
    ------
    InputError
        If it is not one readable CSV file.
    """
    location = locate(path)
    if len(location.paths) > 1 or not location.paths[0].lower().endswith(SUFFIXES):
        raise InputError(f"{what} {quoted(location.name)} must be one CSV file.")
    file = CsvFile(location)
    return file, [row for row in file.rows() if row][1:]
