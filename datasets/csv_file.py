"""CSV files, also compressed: the header first, then all columns in one pass."""

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ldpaudit.datasets.locations import Location, unreadable
from ldpaudit.datasets.names import check_unique, quoted
from ldpaudit.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_BLOCK = 1 << 23


class CsvFile:
    """A CSV file in UTF-8 with a header, separated by commas (``.tsv``: by tabs)."""

    declaration: bytes | None = None
    text = True

    def __init__(self, location: Location) -> None:
        self._location = location
        self.name = location.name
        self._separator = "\t" if ".tsv" in location.paths[0].lower()[-7:] else ","
        self.names = tuple(next(iter(self.rows()), ()))
        if not self.names:
            raise InputError(f"The file {quoted(self.name)} is empty.")
        check_unique(self.names)

    def sha256(self) -> str:
        """Return the digest of the file as it lies there, compressed or not."""
        return self._location.sha256()

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows as text, the header first."""
        with self._reading(), self._open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            yield from csv.reader(text, delimiter=self._separator, strict=True)

    def columns(
        self, names: Sequence[str], as_text: Collection[str] = ()
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order; those in ``as_text`` as strings."""
        table = self._read(list(names), as_text)
        for position, name in enumerate(names):
            yield name, table.column(position)

    def _read(self, names: list[str], as_text: Collection[str]) -> pa.Table:
        bad = _BadRows()
        with self._reading(), self._open() as stream:
            table = pyarrow.csv.read_csv(
                stream,
                read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self._separator,
                    newlines_in_values=True,
                    invalid_row_handler=bad,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=names,
                    column_types={name: pa.large_string() for name in as_text},
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        if bad.count:
            raise InputError(
                f"Every row of {quoted(self.name)} must have {len(self.names)} fields; "
                f"{bad.count} row(s) have more or fewer."
            )
        return table

    def _open(self) -> Any:
        path = self._location.paths[0]
        compression = "gzip" if path.lower().endswith(".gz") else None
        return self._location.filesystem.open_input_stream(path, compression=compression)

    def _reading(self) -> Any:
        return unreadable(self.name, "is not a readable CSV file in UTF-8")


class _BadRows:
    """Counts the rows of another length; their text is never looked at."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, row: Any) -> str:  # noqa: ARG002
        self.count += 1
        return "skip"
