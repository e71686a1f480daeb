"""What tasks share, in a file: other processes map its large arrays instead of copying them."""

import io
import pickle
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldpaudit.errors import OutputError

_ALIGNED: Final = 64


@contextmanager
def parcel(folder: Path, content: Any) -> Iterator[Path]:
    """Write a file that holds ``content``, readable by its owner only; it is removed afterwards.

    Memory-mapped arrays stay where they are: the file names theirs.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    path = folder / f"tasks-{secrets.token_hex(8)}"
    try:
        try:
            _write(path, content)
        except OSError as error:
            why = (error.strerror or "the system gives no reason").lower()
            raise OutputError(f"What tasks share cannot be written: {why}; set TMPDIR.") from None
        yield path
    finally:
        path.unlink(missing_ok=True)


@lru_cache(1)
def opened(path: Path) -> Any:
    """Return what a parcel holds; its large arrays are mapped, and read only."""
    with path.open("rb") as file:
        head, sizes, start = pickle.load(file)  # the parent wrote it, mode 0600 # nosec B301
    data = np.memmap(path, np.uint8, "r") if sizes else np.zeros(0, np.uint8)
    buffers = []
    for size in sizes:
        buffers.append(data[start : start + size])
        start += _padded(size)
    return pickle.loads(head, buffers=buffers)  # as above # nosec B301


def _write(path: Path, content: Any) -> None:
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _ByPlace(stream, 5, buffer_callback=buffers.append).dump(content)
    raw = [buffer.raw() for buffer in buffers]
    sizes, head = [part.nbytes for part in raw], stream.getvalue()
    start = _padded(len(pickle.dumps((head, sizes, 1 << 62))))
    with open(path, "xb", opener=_private) as file:
        pickle.dump((head, sizes, start), file)
        for part in raw:
            file.seek(start)
            file.write(part)
            start += _padded(part.nbytes)


def _private(path: str, flags: int) -> int:
    import os

    return os.open(path, flags, 0o600)


def _padded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


class _ByPlace(pickle.Pickler):
    """Writes a memory-mapped array, or a view of one, as its place in the file."""

    def reducer_override(self, value: Any) -> Any:
        place = _place(value) if isinstance(value, np.ndarray) else None
        return NotImplemented if place is None else (_mapped, place)


def _place(array: Any) -> tuple[str, str, tuple[int, ...], int] | None:
    """Return file, dtype, shape and offset of an array that lies in a file; else None."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    mapped = isinstance(root, np.memmap) and root.filename is not None
    if not mapped or not array.flags.c_contiguous or not array.size:
        return None
    start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return str(root.filename), array.dtype.str, array.shape, root.offset + start


def _mapped(path: str, dtype: str, shape: tuple[int, ...], offset: int) -> Any:
    return np.memmap(path, dtype, "r", offset, shape)
