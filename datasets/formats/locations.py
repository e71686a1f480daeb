"""Where a table lies: one file, a folder, a glob pattern or the URL of any fsspec file system."""

import contextlib
import csv
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

import fsspec
import pyarrow as pa
import pyarrow.fs as pafs

from ldpaudit.datasets.formats.watching import watch
from ldpaudit.datasets.formats.width import Unpacked
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.files.documents import check_regular, why_unreadable
from ldpaudit.files.limits import (
    DOCUMENT_BYTES,
    FILES,
    LINE_BYTES,
)

PARQUET_SUFFIXES = (".parquet", ".parq", ".pq")
SIDECAR = ".ldpaudit.json"
"""What is added to the name of a file that holds no metadata: its declaration lies there."""
_CHUNK = 1 << 22
_LINES = 1 << 24


@dataclass(frozen=True)
class Location:
    """The files that make up one table.

    Attributes
    ----------
    name : str
        The base name of what was asked for; no folder, host or user name.
    filesystem : pyarrow.fs.FileSystem
    paths : tuple of str
        The files, sorted.
    folder : str or None
        The folder that was asked for; None for a file or a pattern.
    """

    name: str
    filesystem: Any
    paths: tuple[str, ...]
    folder: str | None = None

    def part(self, path: str) -> str:
        """Return what an error calls one of the files: by position, never by its path."""
        if len(self.paths) == 1 or path not in self.paths:
            return f"The file {quoted(self.name)}"
        place = self.paths.index(path) + 1
        return f"Part {place} of {len(self.paths)} of {quoted(self.name)}, in the order of names,"

    def open(self, path: str) -> Any:
        """Open one of the files to read its bytes."""
        return self.filesystem.open_input_stream(path, compression=None)

    def unpacked(self) -> Any:
        """Open a single file to read its bytes, uncompressed where its name ends in .gz."""
        path = self.paths[0]
        if not path.lower().endswith(".gz"):
            return self.filesystem.open_input_stream(path, compression=None)
        packed = self.filesystem.get_file_info(path).size
        stream = self.filesystem.open_input_stream(path, compression="gzip")
        return pa.PythonFile(Unpacked(stream, packed, self.name), mode="r")

    def line_blocks(self, kind: str) -> Iterator[bytes]:
        """Yield blocks of whole lines of a file, each ending with a line break; some 16 MiB each.

        ``kind`` names the format in messages.

        Raises
        ------
        InputError
            If the file cannot be read, or a line is too long.
        """
        rest = b""
        with unreadable(self.name, f"is not a readable {kind} file"), self.unpacked() as stream:
            while block := bytes(stream.read(_LINES)):
                text = rest + block
                cut = text.rfind(b"\n") + 1
                if not cut and len(text) > LINE_BYTES:
                    raise InputError(
                        f"A line of {quoted(self.name)} is longer than {LINE_BYTES >> 20} MiB."
                    )
                rest = text[cut:]
                if cut:
                    yield text[:cut]
        if rest:
            yield rest + b"\n"

    def beside(self) -> bytes | None:
        """Return what the declaration beside a single file holds; None without one."""
        path = f"{self.paths[0]}{SIDECAR}"
        with unreadable(f"{self.name}{SIDECAR}", "cannot be read"):
            if self.filesystem.get_file_info(path).type != pafs.FileType.File:
                return None
            with self.open(path) as stream:
                content = bytes(stream.read(DOCUMENT_BYTES + 1))
        if len(content) > DOCUMENT_BYTES:
            raise InputError(f"The declaration {quoted(self.name + SIDECAR)} is too long.")
        return content

    def size(self) -> int:
        """Return the bytes of all files together."""
        return sum(size or 0 for size, *_ in self.stamp())

    def stamp(self) -> tuple[tuple[int | None, ...], ...]:
        """Return size and time of each file, by which a change is noticed.

        Of a file on this machine also its number on the disk, which a file that replaces it does
        not have, and the time of its last change of any kind, which no program can set.
        """
        with unreadable(self.name):
            found = self.filesystem.get_file_info(list(self.paths))
            local = isinstance(self.filesystem, pafs.LocalFileSystem)
            return tuple((i.size, i.mtime_ns, *(_on_disk(i.path) if local else ())) for i in found)

    def sha256(self) -> str:
        """Return the digest of the file, as sha256sum prints it.

        For several files it is the digest of one line ``<digest>  <path>`` per file, in order, with
        paths relative to the folder that they share.
        """
        digests = [self._file_sha256(path) for path in self.paths]
        if len(self.paths) == 1 and self.folder is None:
            return digests[0]
        base = self.folder or os.path.commonpath([PurePosixPath(p).parent for p in self.paths])
        names = [PurePosixPath(path).relative_to(base) for path in self.paths]
        lines = [f"{digest}  {name}\n" for digest, name in zip(digests, names, strict=True)]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

    def _file_sha256(self, path: str) -> str:
        digest = hashlib.sha256()
        with unreadable(self.name), self.open(path) as stream:
            while block := stream.read(_CHUNK):
                digest.update(block)
        return digest.hexdigest()


def _on_disk(path: str) -> tuple[int, ...]:
    try:
        known = Path(path).stat()
    except OSError:
        return ()
    return known.st_ino, known.st_ctime_ns


class Located:
    """A table in a file, or in several: they say which it is."""

    location: Location

    @cached_property
    def _digest(self) -> str:
        return self.location.sha256()

    def sha256(self) -> str:
        """Return the digest of the file or files, compressed or not."""
        return self._digest


_DAMAGED: Final = (
    *(pa.ArrowException, OSError, EOFError, ValueError, csv.Error, RecursionError),
    NotImplementedError,  # Of zip archives.
)


@contextlib.contextmanager
def unreadable(
    name: str, problem: str = "is damaged or truncated", part: str = ""
) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one line without any data.

    ``part`` is what the line calls the file, by default its name.

    The messages of pyarrow and of the csv module can quote cells, so none is passed on.

    Raises
    ------
    InputError
        In place of any error of the reader or of the file system.
    """
    file = part or f"The file {quoted(name)}"
    try:
        yield
    except InputError:
        raise
    except PermissionError:
        raise InputError(f"{file} may not be read: permission denied.") from None
    except FileNotFoundError:
        raise InputError(f"There is no file {quoted(name)}.") from None
    except MemoryError:
        raise InputError(
            f"{file} says that it holds more than fits in memory; it is damaged or made to do so."
        ) from None
    except _DAMAGED as error:
        problem = _told(error) or problem
        raise InputError(f"{file} {problem} ({type(error).__name__}).") from None
    except Exception as error:
        # A library behind a URL has errors of its own, whose texts may hold hosts and paths.
        if type(error).__module__.partition(".")[0] in ("builtins", "ldpaudit"):
            raise
        kind = type(error).__name__
        raise InputError(
            f"{file} could not be read to its end ({kind}); try again, or copy it "
            "to this machine first."
        ) from None


def _told(error: BaseException) -> str:
    """Return what a reader's message says, in our words; empty where it says nothing more."""
    text = str(error)
    if "runcated compressed" in text:
        return "is truncated: its compressed content has no end"
    if "recursion depth" in text or "deeply nested" in text or isinstance(error, RecursionError):
        return "holds types that are nested too deeply"
    return ""


def locate(path: str | os.PathLike[str]) -> Location:
    """Find the files of a path, a folder, a glob pattern or an fsspec URL.

    Raises
    ------
    InputError
        If there is none, or a folder holds no Parquet file.
    MissingDependencyError
        If the URL's file system needs a library that is not installed.
    """
    text = os.fspath(path)
    name = _base_name(text)
    if not text.isascii() and text.encode(errors="ignore") != os.fsencode(text):
        raise InputError(f"The name of {quoted(name)} is not in UTF-8; rename the file.")
    system, place = _file_system(text, name)
    with unreadable(name, "cannot be reached"):
        try:
            paths, folder = _files(system, place, name)
        except (LookupError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            # "data:,a" and the like: a file system that does not understand its own address.
            raise InputError(f"The place of {quoted(name)} cannot be reached.") from None
    local = "file" in _protocols(system)
    if local:
        _check_regular(paths, name)
    arrow = pafs.LocalFileSystem() if local else pafs.PyFileSystem(pafs.FSSpecHandler(system))
    location = Location(name, arrow, tuple(paths), folder)
    watch(location)
    return location


def _check_regular(paths: Iterable[str], name: str) -> None:
    try:
        for path in paths:
            check_regular(Path(path))
    except OSError as error:
        raise InputError(f"{quoted(name)} cannot be read: {why_unreadable(error)}.") from None


def _base_name(text: str) -> str:
    """Return the last part of a path or URL, without a query, which may hold a secret."""
    if "://" in text:
        text = text.split("?", 1)[0]
    return text.rstrip("/").rsplit("/", 1)[-1] or "release"


def _file_system(text: str, name: str) -> tuple[Any, str]:
    try:
        # A file that is there is meant, though its name may look like an address of fsspec's.
        here = "://" not in text and os.path.lexists(text)
        known = fsspec.filesystem("file"), str(Path(text).absolute())
        system, place = known if here else fsspec.core.url_to_fs(text)
    except ImportError:
        scheme = text.split("://", 1)[0]
        raise MissingDependencyError(
            f"Reading {quoted(scheme)} URLs needs the fsspec library for them."
        ) from None
    except Exception as error:  # each file system has errors of its own, with hosts and paths
        kind = type(error).__name__
        raise InputError(f"The place of {quoted(name)} cannot be reached ({kind}).") from None
    return system, str(place)


def _protocols(system: Any) -> tuple[str, ...]:
    protocol = system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _files(system: Any, place: str, name: str) -> tuple[list[str], str | None]:
    if system.isdir(place):
        return _parquet_files(system, place, name), place
    if system.exists(place):
        return [place], None
    if any(mark in place for mark in "*?["):
        found = sorted(p for p in system.glob(place) if system.isfile(p))
        if not found:
            raise InputError(f"No file matches the pattern {quoted(name)}.")
        _check_count(found, name)
        return found, None
    raise InputError(f"There is no file {quoted(name)}.")


def _parquet_files(system: Any, folder: str, name: str) -> list[str]:
    found = []
    for path in sorted(system.find(folder)):
        parts = PurePosixPath(path).relative_to(PurePosixPath(folder)).parts
        hidden = any(part.startswith(("_", ".")) for part in parts)
        if not hidden and path.endswith(PARQUET_SUFFIXES):
            found.append(path)
    if not found:
        raise InputError(f"The folder {quoted(name)} holds no Parquet file.")
    _check_count(found, name)
    return found


def _check_count(found: list[str], name: str) -> None:
    if len(found) > FILES:
        raise InputError(
            f"{quoted(name)} stands for {len(found):,} files; at most {FILES:,} can be read at "
            "once: write fewer, larger ones."
        )
