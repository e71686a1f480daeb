"""Finished parts of a long audit, kept in a folder, so that a run that was killed can go on."""

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from ldpaudit.errors import OutputError, quoted
from ldpaudit.files.documents import check_regular
from ldpaudit.files.writing import WholeFiles

Part: TypeAlias = Any
"""What can be kept: None, bool, int, float, str, NumPy arrays of numbers, and lists, tuples (which
come back as lists) and dictionaries by str of these."""

_FORMAT: Final = 1
_ARRAY: Final = "ndarray"
_SUFFIX: Final = ".part"


@dataclass(frozen=True)
class Finished:
    """The finished parts of one audit, by key.

    What is kept of an insider's audit is confidential: only its owner can read it, and it goes
    when the audit has ended well.

    Attributes
    ----------
    folder : Path or None
        Of this audit alone: of one release, one set of options, one version. None: nothing is
        kept, and nothing is found.
    tell : callable
        Is told in one line what is ignored.
    """

    folder: Path | None = None
    tell: Callable[[str], None] = field(default=lambda _: None, repr=False)

    def __contains__(self, key: str) -> bool:
        """Return whether a part is there, whole or damaged."""
        return self.folder is not None and self._place(key).exists()

    def get(self, key: str) -> Part | None:
        """Return a finished part; None where it is not there, or damaged.

        Parameters
        ----------
        key : str
            Names the part within the audit, for instance ``"attack/bayes"``: it must name
            everything that the part depends on besides release, options, seed and version.
        """
        if self.folder is None:
            return None
        path = self._place(key)
        try:
            check_regular(path)
            content = path.read_bytes()
        except OSError:
            return None
        try:
            return _unpacked(content, key)
        except Exception:  # Whatever a damaged file makes the readers of zip and JSON say.
            self.tell(f"A part in the folder of --resume is damaged and is made again: {path.stem}")
            return None

    def put(self, key: str, value: Part) -> None:
        """Keep a finished part, whole or not at all; one line tells where that is not possible."""
        if self.folder is None:
            return
        try:
            private_folder(self.folder)
            with WholeFiles() as files:
                files.add(self._place(key), private=True).write(_packed(key, value))
        except OutputError:
            self.tell("A part cannot be written to the folder of --resume, and is not kept.")

    def remove(self) -> None:
        """Remove the parts of this audit, and the folder around them where nothing else is left."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            with suppress(OSError):
                self.folder.parent.rmdir()

    def within(self, name: str) -> "Finished":
        """Return the finished parts of a part of this audit, in a folder of its own."""
        return replace(self, folder=None if self.folder is None else self.folder / name)

    def _place(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / (hashlib.sha256(key.encode()).hexdigest()[:32] + _SUFFIX)


def private_folder(path: Path) -> None:
    """Make a folder that its owner alone can use (mode 0700); so is the one around it, if new.

    Raises
    ------
    OutputError
        If that is not possible, or the folder is another user's.
    """
    shown = quoted(path.parent.name)
    if path.parent.is_file():
        raise OutputError(f"{shown} is a file; finished parts of an audit need a folder.")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            raise OutputError(f"The folder {shown} belongs to another user.")
        path.chmod(0o700)
    except OutputError:
        raise
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise OutputError(f"The folder {shown} cannot be made: {why}.") from None


def _packed(key: str, value: Part) -> bytes:
    arrays: list[np.ndarray[Any, Any]] = []
    tree = {"format": _FORMAT, "key": key, "value": _flat(value, arrays)}
    head = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, head, *arrays)
    return file.getvalue()


def _flat(value: Part, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Return a tree for JSON, in which each array is its place in the list."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("An array of objects cannot be kept.")
        arrays.append(value)
        return {_ARRAY: len(arrays)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        if _ARRAY in value or not all(isinstance(name, str) for name in value):
            raise TypeError(f"A dictionary's keys must be text other than {_ARRAY!r}.")
        return {name: _flat(part, arrays) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_flat(part, arrays) for part in value]
    return value


def _unpacked(content: bytes, key: str) -> Part:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        tree = json.loads(file["arr_0"].tobytes())
        if tree["format"] != _FORMAT or tree["key"] != key:
            raise ValueError
        return _whole(tree["value"], file)


def _whole(tree: Any, arrays: Any) -> Part:
    if isinstance(tree, dict):
        if tree.keys() == {_ARRAY}:
            return arrays[f"arr_{tree[_ARRAY]}"]
        return {name: _whole(part, arrays) for name, part in tree.items()}
    if isinstance(tree, list):
        return [_whole(part, arrays) for part in tree]
    return tree
