"""What a file holds by its first bytes, for one whose name promises something else."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from ldpaudit.datasets.formats.locations import (
    ARROW,
    CSV,
    EXCEL,
    JSON,
    NUMPY,
    ORC,
    PACKED,
    PARQUET,
    SVMLIGHT,
    Location,
    unreadable,
)
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError

_LOOKED_AT: Final = 1 << 12
# A byte that text in no usual encoding has, apart from those of white space.
_CONTROL: Final = frozenset((*range(9), *range(14, 27), *range(28, 32), 127))


@dataclass(frozen=True)
class _Kind:
    """Files that begin with some bytes: what they are, the names they have, and what to do."""

    start: bytes
    words: str
    endings: tuple[str, ...]
    advice: str


def _called(*endings: str) -> str:
    return f"call it {', '.join(endings[:-1])}{' or ' * (len(endings) > 1)}{endings[-1]}"


# A workbook, an array file and a table of text in an archive are all zip files.
_ZIPPED: Final = (*EXCEL, *NUMPY, ".zip")
_KINDS: Final = (
    _Kind(b"PAR1", "a Parquet file", PARQUET, _called(".parquet")),
    _Kind(b"ARROW1", "an Arrow file", ARROW, _called(".arrow")),
    _Kind(b"FEA1", "an old Feather file", ARROW, "write Parquet"),
    _Kind(b"ORC", "an ORC file", ORC, _called(".orc")),
    _Kind(b"PK\x03\x04", "a zip archive", _ZIPPED, _called(".zip", ".xlsx", ".npz")),
    _Kind(b"\x1f\x8b", "compressed with gzip", (".gz",), "add .gz to its name"),
    _Kind(b"BZh", "compressed with bzip2", (".bz2",), "add .bz2 to its name"),
    _Kind(b"\xfd7zXZ\0", "compressed with xz", (".xz",), "add .xz to its name"),
    _Kind(b"\x28\xb5\x2f\xfd", "compressed with zstd", (".zst",), "add .zst to its name"),
    _Kind(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old or an encrypted workbook of Excel",
        (),
        "save it without a password as .xlsx or CSV",
    ),
    _Kind(b"\x93NUMPY", "one array of NumPy", (), "write .npz, with an array for each column"),
    _Kind(b"\x89HDF", "an HDF5 file", (), "export the table as CSV or Parquet"),
    _Kind(b"SQLite format 3", "a database", (), "export the table as CSV or Parquet"),
    _Kind(b"$FL", "a file of SPSS", (".sav", ".zsav"), _called(".sav")),
    _Kind(b"<stata_dta>", "a file of Stata", (".dta",), _called(".dta")),
    _Kind(b"%PDF", "a PDF document", (), "export the table as CSV or Parquet"),
)
_TEXT_NAMES: Final = tuple(
    end for end in (*CSV, *JSON, *SVMLIGHT) if not end.endswith(tuple(PACKED))
)


@contextlib.contextmanager
def by_its_name(location: Location) -> Iterator[None]:
    """Say of a file that cannot be opened what it is, where its name says otherwise (InputError).

    A file that can be opened is never looked at.
    """
    try:
        yield
    except InputError:
        found = _mismatch(location)
        if found is None:
            raise
        raise InputError(f"The file {quoted(location.name)} {found}.") from None


def _mismatch(location: Location) -> str | None:
    """Return what a single file is and what to do, None where its name agrees or it is unknown."""
    if len(location.paths) != 1:
        return None
    path = location.paths[0].lower()
    try:
        with unreadable(location.name), location.open(location.paths[0]) as stream:
            start = bytes(stream.read(_LOOKED_AT))
    except InputError:  # The first error is reported.
        return None
    for kind in _KINDS:
        if start.startswith(kind.start):
            return (
                None
                if path.endswith(kind.endings)
                else f"is {kind.words}, whatever its name says: {kind.advice}"
            )
    packed = PurePosixPath(path).suffix
    if not _is_text(start) or path.endswith(_TEXT_NAMES):
        return None
    if packed in PACKED:
        return f"is plain text, not compressed: take {packed} from its name"
    names = ".csv, or .jsonl if every line is a JSON object"
    return f"is plain text, whatever its name says: call it {names}"


def _is_text(start: bytes) -> bool:
    """Return whether bytes are text in UTF-8, or in another encoding that keeps ASCII."""
    if not start or _CONTROL.intersection(start):
        return False
    return 4 * sum(byte > 0x7F for byte in start) < len(start)
