"""Writing files batch by batch: all of them appear whole at the end, or none does."""

import contextlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.csv_file import SUFFIXES as CSV_SUFFIXES
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import OutputError

_FAILURES = (OSError, ValueError, pa.ArrowException)


@dataclass
class _Draft:
    """A file under a name of its own until it is complete."""

    target: Path
    path: Path
    text: bool = False
    stream: Any = None
    writer: Any = None


@dataclass
class WholeFiles:
    """Files that are written together; a context manager.

    When its block ends well, every file is on the disk and takes its name; when anything goes
    wrong, also an interruption, none of them is left, not even in part.

    Parameters
    ----------
    overwrite : bool
        Whether files that are there already are replaced.
    """

    overwrite: bool = False
    _drafts: list[_Draft] = field(default_factory=list)

    def add(
        self, target: Path, schema: pa.Schema, *, private: bool = False, text: bool = False
    ) -> "PartFile":
        """Start a file.

        Parameters
        ----------
        target : Path
            In a folder that exists.
        schema : pyarrow.Schema
            With the metadata that the file gets.
        private : bool
            Whether nobody but its owner may read it (mode 0600), from the first byte on.
        text : bool
            Whether it is CSV, and not Parquet.

        Raises
        ------
        OutputError
            If the file is there already, or cannot be written.
        """
        check_target(target, overwrite=self.overwrite, text=text)
        draft = target.parent / f".{secrets.token_hex(8)}.tmp"
        started = _Draft(target, draft, text=text)
        self._drafts.append(started)  # Before the file is there: an interruption comes any time.
        try:
            handle = os.open(
                draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666
            )
            started.stream = os.fdopen(handle, "wb")
            started.writer = _writer(started.stream, schema, text=text)
        except _FAILURES as error:
            raise _unwritable(target, error) from None
        return PartFile(started)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._publish()
        finally:
            for draft in self._drafts:
                for part in (draft.writer, draft.stream):
                    with contextlib.suppress(*_FAILURES, AttributeError):
                        part.close()
                with contextlib.suppress(OSError):
                    draft.path.unlink(missing_ok=True)

    def _publish(self) -> None:
        for draft in self._drafts:
            try:
                draft.writer.close()
                draft.stream.flush()
                os.fsync(draft.stream.fileno())
            except _FAILURES as error:
                raise _unwritable(draft.target, error) from None
        for draft in self._drafts:
            check_target(draft.target, overwrite=self.overwrite, text=draft.text)
        self._rename()

    def _rename(self) -> None:
        """Give every draft its name; when one fails, take the new names back."""
        new = [draft.target for draft in self._drafts if not os.path.lexists(draft.target)]
        try:
            for draft in self._drafts:
                try:
                    draft.path.replace(draft.target)
                except OSError as error:
                    raise _unwritable(draft.target, error) from None
        except BaseException:
            for target in new:
                with contextlib.suppress(OSError):
                    target.unlink(missing_ok=True)
            raise


@dataclass(frozen=True)
class PartFile:
    """A file that is being written."""

    _draft: _Draft

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows, as a row group."""
        try:
            self._draft.writer.write_batch(batch)
        except _FAILURES as error:
            raise _unwritable(self._draft.target, error) from None


def _writer(stream: Any, schema: pa.Schema, *, text: bool) -> Any:
    if text:
        return pyarrow.csv.CSVWriter(stream, schema)
    return pq.ParquetWriter(stream, schema, write_page_checksum=True)


def is_csv(target: Path) -> bool:
    """Return whether a file's name is one of a CSV file."""
    return target.name.lower().endswith(".csv")


def check_target(target: Path, *, overwrite: bool, text: bool = False) -> None:
    """Check that a Parquet file, or with ``text`` also a CSV file, may be written there.

    Raises
    ------
    OutputError
        If it exists already, is a folder, has no folder to lie in, or has a name of a CSV file.
    """
    shown = quoted(target.name)
    if target.name.lower().endswith(CSV_SUFFIXES) and not (text and is_csv(target)):
        ends = ".parquet or .csv" if text else ".parquet"
        raise OutputError(f"{shown} is written as Parquet; give it a name that ends in {ends}.")
    try:
        folder = target.is_dir()
        taken = os.path.lexists(target) and not overwrite
        place = target.parent.is_dir() and os.access(target.parent, os.W_OK)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None
    if folder:
        raise OutputError(f"{shown} is a folder; give the name of a file.")
    if taken:
        raise OutputError(f"{shown} exists already and is left as it is; --overwrite replaces it.")
    if not place:
        raise OutputError(f"The folder for {shown} does not exist or cannot be written to.")


def _unwritable(target: Path, error: Exception) -> OutputError:
    return OutputError(f"{quoted(target.name)} cannot be written ({type(error).__name__}).")
