"""Where a table lies: one file, a folder, a glob pattern or the URL of any fsspec file system."""

# Files that change while they are read are noticed by size, times and place on the disk.

import contextlib
import csv
import hashlib
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import fsspec
import pyarrow as pa
import pyarrow.fs as pafs

from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.work.documents import check_regular, why_unreadable
from ldpaudit.work.limits import (
    COLUMNS,
    DOCUMENT_BYTES,
    FILES,
    LINE_BYTES,
    UNPACKED_BYTES,
    UNPACKED_FREE,
    UNPACKED_TIMES,
)

PARQUET: Final = (".parquet", ".parq", ".pq")
# How a text file may be compressed, by the end of its name; a zip archive holds one file.
PACKED: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz", ".zip": "zip"}
_TEXT_ENDS: Final = (".csv", ".tsv", ".tab", ".data", ".dat", ".txt")
_JSON_ENDS: Final = (".jsonl", ".ndjson")


def _also_packed(*ends: str) -> tuple[str, ...]:
    return tuple(end + packed for end in ends for packed in ("", *PACKED))


CSV: Final = (*_also_packed(*_TEXT_ENDS), ".zip")
JSON: Final = _also_packed(*_JSON_ENDS)
STATISTICS: Final = (".dta", ".sav", ".zsav", ".sas7bdat", ".xpt")
ORC: Final = (".orc",)
ARROW: Final = (".feather", ".arrow", ".ipc")
NUMPY: Final = (".npz",)
EXCEL: Final = (".xlsx", ".xlsm")
SVMLIGHT: Final = (".svm", ".libsvm", ".svmlight", ".svm.gz", ".libsvm.gz", ".svmlight.gz")


def is_svmlight(path: str) -> bool:
    """Return whether a file's name says that it is an svmlight file."""
    return path.split("?", 1)[0].lower().endswith(SVMLIGHT)


# What is added to the name of a file for that of its declaration.
SIDECAR: Final = ".ldpaudit.json"
_CHUNK: Final = 1 << 22
# Bits of an entry of an archive that is encrypted.
_ENCRYPTED: Final = 0b1000001
_LINES: Final = 1 << 24

_Seen = list[tuple["Location", tuple[Any, ...]]]
_seen: Final[ContextVar[_Seen | None]] = ContextVar("seen", default=None)


@dataclass(frozen=True)
class Location:
    """The files that make up one table, in the order of the numbers in their names.

    ``name`` is the base name of what was asked for (no folder, host or user name), ``folder`` the
    folder that was asked for, None for a file or a pattern.
    """

    name: str
    filesystem: Any
    paths: tuple[str, ...]
    folder: str | None = None

    @property
    def remark(self) -> str:
        """How several files follow each other, where names in the order of letters would not."""
        if [*self.paths] == sorted(self.paths):
            return ""
        return (
            f"{len(self.paths)} files in the order of the numbers in their names (2 before 10); "
            "rows that were written in the order of letters need --id"
        )

    def part(self, path: str) -> str:
        """Return what an error calls one of the files: by position, never by its path."""
        if len(self.paths) == 1 or path not in self.paths:
            return f"The file {quoted(self.name)}"
        place = self.paths.index(path) + 1
        return f"Part {place} of {len(self.paths)} of {quoted(self.name)}, by numbers in names,"

    def open(self, path: str) -> Any:
        """Open one of the files to read its bytes."""
        return self.filesystem.open_input_stream(path, compression=None)

    def unpacked(self) -> Any:
        """Open a single file to read its bytes, uncompressed where its name says that it is."""
        path = self.paths[0]
        codec = PACKED.get(PurePosixPath(path).suffix.lower())
        if codec is None:
            return self.open(path)
        packed = self.filesystem.get_file_info(path).size
        if codec == "zip":
            stream = _only_entry(self.filesystem.open_input_file(path), self.name)
        elif codec == "xz":
            stream = lzma.LZMAFile(self.open(path))  # noqa: SIM115 - its reader closes it.
        else:
            stream = self.filesystem.open_input_stream(path, compression=codec)
        return pa.PythonFile(_Unpacked(stream, packed, self.name), mode="r")

    def line_blocks(self, kind: str) -> Iterator[bytes]:
        """Yield blocks of whole lines, each ending with a line break; some 16 MiB each.

        ``kind`` names the format in messages (InputError where it cannot be read).
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

    def sidecar(self) -> bytes | None:
        """Return what the declaration in a file of its own holds; None without one."""
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

    def most_bytes(self) -> int:
        """Return the most bytes that a single text file can have, uncompressed."""
        size, suffix = self.size(), PurePosixPath(self.paths[0]).suffix.lower()
        return max(UNPACKED_FREE, UNPACKED_TIMES * size) if suffix in PACKED else size

    def stamp(self) -> tuple[tuple[int | None, ...], ...]:
        """Return size and time of each file, by which a change is noticed."""
        # Of a file on this machine also its number on the disk, which a file that replaces it does
        # not have, and the time of its last change of any kind, which no program can set.
        stamps = []
        with unreadable(self.name):
            for info in self.filesystem.get_file_info(list(self.paths)):
                stamp: tuple[int | None, ...] = (info.size, info.mtime_ns)
                if isinstance(self.filesystem, pafs.LocalFileSystem):
                    with contextlib.suppress(OSError):
                        known = Path(info.path).stat()
                        stamp += (known.st_ino, known.st_ctime_ns)
                stamps.append(stamp)
        return tuple(stamps)

    def sha256(self) -> str:
        """Return the digest of the file, as sha256sum prints it."""
        # For several files it is the digest of one line ``<digest> <path>`` per file, in order,
        # with paths relative to the folder that they share.
        digests = []
        for path in self.paths:
            digest = hashlib.sha256()
            with unreadable(self.name), self.open(path) as stream:
                while block := stream.read(_CHUNK):
                    digest.update(block)
            digests.append(digest.hexdigest())
        if len(self.paths) == 1 and self.folder is None:
            return digests[0]
        base = self.folder or os.path.commonpath([PurePosixPath(p).parent for p in self.paths])
        names = [PurePosixPath(path).relative_to(base) for path in self.paths]
        lines = [f"{digest}  {name}\n" for digest, name in zip(digests, names, strict=True)]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _only_entry(file: Any, name: str) -> Any:
    """Open the only table in a zip archive (InputError where there is not one)."""
    archive = zipfile.ZipFile(file)
    entries = [
        entry
        for entry in archive.infolist()
        if not entry.is_dir() and not entry.filename.startswith(("__MACOSX/", "."))
    ]
    lines = name.lower().endswith(JSON)
    kind, ends = ("JSON lines", _JSON_ENDS) if lines else ("CSV", _TEXT_ENDS)
    tables = [entry for entry in entries if entry.filename.lower().endswith(ends)]
    if len(tables) != 1:
        raise InputError(
            f"The archive {quoted(name)} must hold one {kind} file; it holds {len(tables)} among "
            f"{len(entries)} files."
        )
    if tables[0].flag_bits & _ENCRYPTED:
        raise InputError(f"The archive {quoted(name)} is encrypted.")
    return archive.open(tables[0])


class _Unpacked:
    """The content of a compressed file, as far as an honest file's can go."""

    def __init__(self, stream: Any, packed: int | None, name: str) -> None:
        self._stream, self._packed, self._name, self._seen = stream, packed, name, 0
        self.close = stream.close

    @property
    def closed(self) -> bool:
        """Whether nothing more can be read."""
        return bool(self._stream.closed)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes (InputError where there are too many)."""
        block = bytes(self._stream.read(size) if size >= 0 else self._stream.read())
        self._seen += len(block)
        check_unpacked(self._seen, self._packed, self._name, UNPACKED_BYTES)
        return block


def check_unpacked(unpacked: int, packed: int | None, name: str, most: int) -> None:
    """Check that a file's content is not out of all proportion to the file (InputError).

    ``packed``: the bytes of the file, None where that is not known; ``most``: bytes that no
    content may have.
    """
    honest = most if packed is None else max(UNPACKED_FREE, UNPACKED_TIMES * packed)
    if unpacked > min(most, honest):
        raise InputError(
            f"The file {quoted(name)} is too large when unpacked: more than {most >> 30} GiB, or "
            f"than {UNPACKED_TIMES} times the file; write Parquet."
        )


def check_width(columns: int, name: str) -> None:
    """Check that a table does not have too many columns (InputError)."""
    if columns > COLUMNS:
        raise InputError(
            f"The table {quoted(name)} has {columns:,} columns; at most {COLUMNS:,} "
            "columns can be read. Write many features as one column of lists of numbers."
        )


_DAMAGED: Final = (
    *(pa.ArrowException, OSError, EOFError, ValueError, csv.Error, RecursionError),
    NotImplementedError,  # Of zip archives.
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)


@contextlib.contextmanager
def unreadable(
    name: str, problem: str = "is damaged or truncated", part: str = ""
) -> Iterator[None]:
    """Give one line (InputError) in place of any error of a reader or of the file system.

    ``name``: the file's base name; ``problem``: what is wrong with it; ``part``: what to call it,
    where it is one of several.
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
        text = str(error)
        if "runcated compressed" in text:
            problem = "is truncated: its compressed content has no end"
        elif "xceeded size limit" in text:
            problem = f"has too many columns and nested fields: at most {COLUMNS:,} can be read"
        elif isinstance(error, RecursionError) or any(
            sign in text for sign in ("recursion depth", "deeply nested")
        ):
            problem = "holds types that are nested too deeply"
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


def locate(path: str | os.PathLike[str]) -> Location:
    """Find the files of a path, a folder, a glob pattern or an fsspec URL."""
    text = os.fspath(path)
    # A query may hold a secret.
    bare = text.split("?", 1)[0] if "://" in text else text
    name = bare.rstrip("/").rsplit("/", 1)[-1] or "release"
    if not text.isascii() and text.encode(errors="ignore") != os.fsencode(text):
        raise InputError(f"The name of {quoted(name)} is not in UTF-8; rename the file.")
    try:
        # A file that is there is meant, though its name may look like an address of fsspec's.
        if "://" not in text and os.path.lexists(text):
            system, place = fsspec.filesystem("file"), str(Path(text).absolute())
        else:
            system, place = fsspec.core.url_to_fs(text)
    except ImportError:
        scheme = text.split("://", 1)[0]
        raise MissingDependencyError(
            f"Reading {quoted(scheme)} URLs needs the fsspec library for them."
        ) from None
    except Exception as error:  # each file system has errors of its own, with hosts and paths
        kind = type(error).__name__
        raise InputError(f"The place of {quoted(name)} cannot be reached ({kind}).") from None
    with unreadable(name, "cannot be reached"):
        try:
            paths, folder = _files(system, str(place), name)
        except (LookupError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            # "data:,a" and the like: a file system that does not understand its own address.
            raise InputError(f"The place of {quoted(name)} cannot be reached.") from None
    local = "file" in ([system.protocol] if isinstance(system.protocol, str) else system.protocol)
    if local:
        try:
            for one in paths:
                check_regular(Path(one))
        except OSError as error:
            why = why_unreadable(error)
            raise InputError(f"{quoted(name)} cannot be read: {why}.") from None
    arrow = pafs.LocalFileSystem() if local else pafs.PyFileSystem(pafs.FSSpecHandler(system))
    location = Location(name, arrow, tuple(paths), folder)
    if (seen := _seen.get()) is not None:  # Before anything of the files is read.
        seen.append((location, location.stamp()))
    return location


# What looks random in a name, such as a UUID or a digest, has no numbers to sort by.
_RANDOM: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}")
_DIGITS: Final = re.compile(r"[0-9]+")


def numbered(path: str) -> tuple[tuple[str, int, str], ...]:
    """Return what sorts a path by the numbers in its names, then letter for letter."""
    bare = _RANDOM.sub("", path)
    texts, numbers = _DIGITS.split(bare), [*map(int, _DIGITS.findall(bare)), -1]
    return (
        *((text, number, "") for text, number in zip(texts, numbers, strict=True)),
        ("", -1, path),
    )


def _files(system: Any, place: str, name: str) -> tuple[list[str], str | None]:
    """Return the files at a place, and the folder if it is one."""
    kind = ""
    with contextlib.suppress(FileNotFoundError):
        kind = system.info(place)["type"]
    if kind == "directory":
        found, folder = [], place
        for path in sorted(system.find(place), key=numbered):
            parts = PurePosixPath(path).relative_to(PurePosixPath(place)).parts
            hidden = any(part.startswith(("_", ".")) for part in parts)
            if not hidden and path.endswith(PARQUET):
                found.append(path)
        if not found:
            raise InputError(f"The folder {quoted(name)} holds no Parquet file.")
    elif kind:
        return [place], None
    elif any(mark in place for mark in "*?["):
        matching = (path for path in system.glob(place) if system.isfile(path))
        found, folder = sorted(matching, key=numbered), None
        if not found:
            raise InputError(f"No file matches the pattern {quoted(name)}.")
    else:
        raise InputError(f"There is no file {quoted(name)}.")
    if len(found) > FILES:
        raise InputError(
            f"{quoted(name)} stands for {len(found):,} files; at most {FILES:,} can be read at "
            "once: write fewer, larger ones."
        )
    return found, folder


def check_unchanged() -> None:
    """Check that the files opened in the ``watching`` block are as they were then (InputError)."""
    for files, before in _seen.get() or ():
        if files.stamp() != before:
            raise InputError(
                f"The file {quoted(files.name)} changed while it was being read; run again when "
                "nothing writes to it."
            )


@contextlib.contextmanager
def watching(noted: bool = True) -> Iterator[None]:
    """Note the files that are opened in the block, for a block around it as well.

    ``noted``: False for a block that opens what may change: files that are replaced later.
    """
    around, seen = _seen.get(), _Seen()
    token = _seen.set(seen if noted else None)
    try:
        yield
    finally:
        _seen.reset(token)
    if around is not None:
        around.extend(seen)


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """Refuse, when the block ends, what it read of files that changed meanwhile (InputError)."""
    with watching():
        yield
        check_unchanged()
