"""svmlight files, also compressed: batches of labels and of sparse rows."""

import io
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ldpaudit.datasets.formats.locations import Location
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray

SUFFIXES: Final = (".svm", ".libsvm", ".svmlight")
SPARSE_SUFFIXES: Final = (*SUFFIXES, *(f"{suffix}.gz" for suffix in SUFFIXES))
LARGEST_INDEX: Final = (1 << 31) - 2
LARGEST_VALUE: Final = 1e18
"""Squares of sums of such numbers fit in float32."""
_NUMBER: Final = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_LINE: Final = re.compile(
    rf"\s*{_NUMBER}(\s+qid:\d+)?((\s+\d+:{_NUMBER})*)\s*(#.*)?".encode(), re.DOTALL
)


def is_svmlight(path: str) -> bool:
    """Return whether a file's name says that it is an svmlight file."""
    return path.split("?", 1)[0].lower().endswith(SPARSE_SUFFIXES)


def read_batches(location: Location) -> Iterator[tuple[Any, FloatArray]]:
    """Yield the rows in order, some 16 MiB of text at a time.

    Yields
    ------
    matrix : scipy.sparse.csr_matrix of shape (rows, indices)
    labels : float64 array of shape (rows,)
        The numbers at the start of the lines.

    Raises
    ------
    InputError
        If a line is malformed: it gives the line's number, and nothing of what it holds.
    """
    first = 1
    for text in location.line_blocks("svmlight"):
        matrix, labels = _parsed(text, location.name, first)
        first += text.count(b"\n")
        if len(labels):
            yield matrix, labels


def count_lines(location: Location) -> int:
    """Return the number of lines, at least that of rows."""
    return sum(text.count(b"\n") for text in location.line_blocks("svmlight"))


def _parsed(text: bytes, name: str, first: int) -> tuple[Any, FloatArray]:
    from sklearn.datasets import load_svmlight_file

    try:
        matrix, labels = load_svmlight_file(io.BytesIO(text), zero_based=True)
    except (ValueError, OverflowError):
        raise _explained(text, name, first) from None
    if not (np.isfinite(labels).all() and (np.abs(matrix.data) <= LARGEST_VALUE).all()):
        raise _explained(text, name, first)
    return matrix, np.asarray(labels, dtype=np.float64)


def _explained(text: bytes, name: str, first: int) -> InputError:
    """Return the error for the first line that is wrong; it holds a line number alone."""
    for number, line in enumerate(text.splitlines(), start=first):
        problem = _problem(line)
        if problem is not None:
            return InputError(f"Line {number} of {quoted(name)} {problem}.")
    return InputError(
        f"The file {quoted(name)} must be in the svmlight format; a line from {first} on is not."
    )


def _problem(line: bytes) -> str | None:
    if not line.split(b"#", 1)[0].strip():
        return None
    found = _LINE.fullmatch(line)
    if found is None:
        return "must be a number for the label, then index:value pairs with indices from 0"
    indices = [int(pair.split(b":", 1)[0]) for pair in found[4].split()]
    if any(b <= a for a, b in pairwise(indices)):
        return "must have each index once, in increasing order"
    if indices and indices[-1] > LARGEST_INDEX:
        return f"must have indices of at most {LARGEST_INDEX}"
    fits = (np.abs(_values(line)) <= LARGEST_VALUE).all()
    return None if fits else f"must have finite values of at most {LARGEST_VALUE:g}"


def _values(line: bytes) -> FloatArray:
    words = line.split(b"#", 1)[0].split()
    cells = [word.rsplit(b":", 1)[-1] for word in words if not word.startswith(b"qid:")]
    return np.array([float(cell) for cell in cells])
