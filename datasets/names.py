"""How messages call columns: by their place, since their names are in the file alone.

The rule, kept by every message: it repeats what the user typed, and nothing that only the file
holds. A name can be a cell: that of a file without a header.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pyarrow as pa

from ldpaudit.errors import InputError, nearest, quoted

__all__ = [
    "ColumnError",
    "called",
    "check_header",
    "check_unique",
    "column_of",
    "listed",
    "missing_column",
    "of_column",
    "quoted",
    "shown_type",
]


class ColumnError(InputError):
    """Something is wrong with a column; :func:`of_column` says which.

    Parameters
    ----------
    problem : str
        The sentence without its subject: ``"must be finite."``
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"A column {problem}")
        self.problem = problem


def called(name: str, names: Sequence[str]) -> str:
    """Return what messages call the column ``name`` of a table with these ``names``: its place."""
    return f"column {[*names].index(name) + 1}"


def listed(some: Sequence[str], names: Sequence[str], most: int) -> str:
    """Return what messages call several columns of a table: ``"columns 2, 5 and 3 more"``."""
    places = {name: place for place, name in enumerate(names, start=1)}
    shown = ", ".join(str(places[name]) for name in some[:most])
    more = f" and {len(some) - most} more" if len(some) > most else ""
    return f"column{'s' if len(some) > 1 else ''} {shown}{more}"


@contextmanager
def of_column(name: str, names: Sequence[str], whose: str = "") -> Iterator[None]:
    """Say which column of a table an error is about, by its place (InputError).

    ``whose`` follows the place, such as ``" of the synthetic table"``.
    """
    try:
        yield
    except (ColumnError, UnicodeDecodeError) as error:
        problem = error.problem if isinstance(error, ColumnError) else "must be text in UTF-8."
        raise InputError(f"{called(name, names).capitalize()}{whose} {problem}") from None


def shown_type(kind: pa.DataType) -> str:
    """Return a type in a word or two; one that has fields has names, so they are left out."""
    nested = pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)
    words = ("list", "struct", "map", "union")
    return next((w for w in words if w in str(kind)[:20]), "nested") if nested else str(kind)[:60]


def missing_column(
    name: object, role: str, candidates: Sequence[str], advice: str = "", *, typed: bool = True
) -> InputError:
    """Return the error for a column that is not there; it tells the place of the nearest one.

    Parameters
    ----------
    name : str
        The column that was asked for; anything else is a mistake of its own.
    role : str
        What it was to be, for instance ``"label"``; or ``"to drop"``.
    candidates : sequence of str
        The columns that there are.
    advice : str
        What to do, where no column is alike.
    typed : bool
        Whether the user named it; else a file did, and the message does not repeat it.
    """
    if not isinstance(name, str):  # From Python; a data frame's column 5 is read as '5'.
        kind = type(name).__name__
        return InputError(f"The {role} column must be named by a text, as '5'. Got {kind} instead.")
    close = nearest(name, candidates)
    # Perhaps they are no names at all, but the first row.
    if any(_number(one) is not None for one in candidates):
        end = "does the file's first line name its columns?"
    elif close is None:
        end = advice
    else:
        alike = "differs only in case" if close.casefold() == name.casefold() else "is most like it"
        end = f"the name of {called(close, candidates)} {alike}."
    what = f" {quoted(name)}" if typed else ", which the file's declaration names,"
    if role.startswith("to "):
        role, what = "", f"{what} {role}"
    text = f"There is no {role} column{what}".replace("  ", " ")
    text += f" among the {len(candidates)} columns"
    if typed and (name, role) == ("label", "label"):  # The usual name: perhaps nobody typed it.
        text = (
            f"None of the {len(candidates)} columns is called 'label', and --label names no other"
        )
    return InputError(f"{text}; {end}" if end else f"{text}.")


def _number(text: str) -> float | None:
    try:
        value = float(re.sub(r"\s", "", text.replace(",", ".")))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def check_header(names: Sequence[str], columns: Sequence[Sequence[str]], file: str) -> None:
    """Check that a file begins with the names of its columns, not with a row: a person's cells.

    A row's cells are like those below: texts that occur there, numbers of that size. Columns tell
    nothing where nearly every text is another, or where their names count (0, 1, 2 …, or years).

    Parameters
    ----------
    names : sequence of str
        The file's first line.
    columns : sequence of sequences of str
        The first cells of each column; there may be fewer columns than names.
    file : str
        The file's base name.

    Raises
    ------
    InputError
        If more than half of the names, in columns that tell, are like the cells below them.
    """
    counted = _count(names)
    told = [
        _is_at_home(name.strip(), [cell.strip() for cell in cells])
        for name, cells in zip(names, columns, strict=False)
        if not (counted and _number(name) is not None)
    ]
    if 2 * told.count(True) > len(told) - told.count(None):
        raise InputError(
            f"The first line of {quoted(file)} looks like a row of the table, not like the names "
            "of its columns; put a line of names before it, or say that it is one with --header."
        )


def _count(names: Sequence[str]) -> bool:
    """Return whether the numbers among the names are 0, 1, 2 …, or rise or fall by small steps."""
    numbers = [number for number in map(_number, names) if number is not None]
    steps = {b - a for a, b in pairwise(numbers)}
    even = steps <= {*range(1, 11)} or steps <= {*range(-10, 0)}
    whole = all(number.is_integer() for number in numbers)
    return even and whole and (len(numbers) > 2 or numbers[:1] in ([0.0], [1.0]))


def _is_at_home(name: str, cells: Sequence[str]) -> bool | None:
    """Return whether a name is like the cells of its column, None where they do not tell."""
    filled = [cell for cell in cells if cell]
    numbers, own = [_number(cell) for cell in filled], _number(name)
    known = [number for number in numbers if number is not None]
    if filled and len(known) == len(filled):
        low, high = min(known), max(known)
        return own is not None and 2 * low - high <= own <= 2 * high - low
    return name in filled if 2 * len({*filled}) <= len(filled) else None


def check_unique(names: Sequence[str]) -> None:
    """Check that no two columns have the same name.

    Raises
    ------
    InputError
        If a name occurs more than once.
    """
    repeated = sum(count > 1 for count in Counter(names).values())
    if repeated:
        raise InputError(
            f"Column names must be distinct; {repeated} of {len(names)} occur(s) more than once."
        )


@contextmanager
def column_of(name: str, private: Collection[str]) -> Iterator[None]:
    """Let a message say which private column it is about, where there are several (InputError)."""
    try:
        yield
    except InputError as error:
        if len(private) < 2:
            raise
        raise InputError(f"Private column {[*private].index(name) + 1}: {error}") from None
