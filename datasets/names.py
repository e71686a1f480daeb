"""Columns by name: the role of each, and how messages call them."""

# The rule, kept by every message: it repeats what the user typed, and nothing that only the file
# holds. A name can be a cell: that of a file without a header. So columns are called by their
# place; only where a name is none for certain (a ``Header``) may a message suggest it for a
# misspelt one.

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from ldpaudit.errors import InputError, nearest
from ldpaudit.errors import quoted as quoted

DEFAULT_LABEL: Final = "label"
_MOST_NAMES: Final = 8
# Words for a number that is missing, so a row may hold them.
_MISSING: Final = frozenset(
    ("na", "nan", "n/a", "null", "none", "nil", "missing", "unknown", "k.a.", "inf")
)

# The options that name one column each time, by the role that they give it.
_REPEATED: Final = {
    "label": "--label",
    "true label": "--truth-column",
    "to drop": "--drop",
    "to keep": "--keep",
    "to use as a feature": "--features",
    "to read as text": "--text",
    "to slice by (--slice)": "--slice",
    "to take as before the noise": "--before",
    "to declare as before the noise": "--before",
}


class Header(tuple[str, ...]):
    """Column names that cannot be a row's cells: a message may suggest one for a misspelt name."""

    __slots__ = ()


class ColumnError(InputError):
    """Something is wrong with a column, in a sentence without its subject: ``"must be finite."``"""

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
    """Say which column an error is about: its place, then ``whose`` (``" of the … table"``)."""
    try:
        yield
    except (ColumnError, UnicodeDecodeError) as error:
        problem = error.problem if isinstance(error, ColumnError) else "must be text in UTF-8."
        raise InputError(f"{called(name, names).capitalize()}{whose} {problem}") from None


@contextmanager
def column_of(name: str, private: Collection[str]) -> Iterator[None]:
    """Let a message say which private column it is about, where there are several (InputError)."""
    try:
        yield
    except InputError as error:
        if len(private) < 2:
            raise
        raise InputError(f"Private column {quoted(name)}: {error}") from None


def shown_type(kind: pa.DataType) -> str:
    """Return a type in a word or two; one that has fields has names, so they are left out."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    nested = pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)
    words = ("list", "struct", "map", "union")
    return next((w for w in words if w in str(kind)[:20]), "nested") if nested else str(kind)[:60]


def missing_column(
    name: object, role: str, candidates: Sequence[str], advice: str = "", *, typed: bool = True
) -> InputError:
    """Return the error for a column that is not there; it gives the nearest one, or its place.

    ``role`` says what it was to be, for instance ``"label"``, or ``"to drop"``; ``advice`` what
    to do where no column is alike; ``typed`` whether the user named it: else a file did, and the
    message does not repeat it.
    """
    if not isinstance(name, str):  # From Python; a data frame's column 5 is read as '5'.
        kind = type(name).__name__
        return InputError(f"The {role} column must be named by a text, as '5'. Got {kind} instead.")
    close, parts = nearest(name, candidates), [part.strip() for part in name.split(",")]
    if typed and role in _REPEATED and len(parts) > 1 and {*parts} <= {*candidates}:
        each = " ".join(f"{_REPEATED[role]} {shlex.quote(part)}" for part in parts)
        return InputError(
            f"There is no column {quoted(name)}; where a command takes several, each is named by "
            f"itself: {each}."
        )
    # Perhaps they are no names at all, but the first row.
    if len(candidates) == 1 and re.search("[,;\t|]", candidates[0]):
        end = "do other marks separate the fields? Without --separator they are detected."
    elif any(_number(one) is not None for one in candidates):
        end = "does the file's first line name its columns?"
    elif close is None:
        # The usual name perhaps nobody typed, and then nobody vouches for the file's first line.
        asked = typed and (name, role) != ("label", "label")
        end = advice or (_named(candidates) if asked and isinstance(candidates, Header) else "")
    elif typed and isinstance(candidates, Header):
        end = f"did you mean {quoted(close)}?"
    else:
        alike = "differs only in case" if close.casefold() == name.casefold() else "is most like it"
        end = f"the name of {called(close, candidates)} {alike}."
    what = f" {quoted(name)}" if typed else ", which the file's declaration names,"
    if role.startswith("to "):
        role, what = "", f"{what} {role}"
    text = f"There is no {role} column{what}".replace("  ", " ")
    text += f" among the {len(candidates)} column{'s' if len(candidates) != 1 else ''}"
    if typed and (name, role) == ("label", "label"):  # The usual name: perhaps nobody typed it.
        verb = "is" if len(candidates) > 1 else "is not"
        text = (
            f"{_none_of(len(candidates))} {verb} called 'label', and no other was chosen (--label)"
        )
    return InputError(f"{text}; {end}" if end else f"{text}.")


def _none_of(columns: int) -> str:
    return f"None of the {columns} columns" if columns > 1 else "The only column"


def _named(names: Sequence[str]) -> str:
    """Return the first columns of a file whose first line is no row, by their names."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"its columns are {', '.join(map(quoted, names[:_MOST_NAMES]))}{more}."


def _number(text: str) -> float | None:
    try:
        value = float(re.sub(r"\s", "", text.replace(",", ".")))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def header_of(names: Sequence[str], columns: Sequence[Sequence[str]], file: str) -> tuple[str, ...]:
    """Check that a file begins with the names of its columns, not with a row: a person's cells.

    A row's cells are like those below, the first cells of ``columns``: texts that occur there,
    numbers of that size. Columns tell nothing where nearly every text is another, or where their
    names count (0, 1, 2 …, or years). The names are a ``Header`` where no row has such cells:
    different words over two or more columns of numbers, and no text that occurs below.
    """
    numbers = [number for number in map(_number, names) if number is not None]
    steps = {b - a for a, b in pairwise(numbers)}
    even = steps <= {*range(1, 11)} or steps <= {*range(-10, 0)}
    counts = len(numbers) > 2 or numbers[:1] in ([0.0], [1.0])
    counted = even and counts and all(number.is_integer() for number in numbers)
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
    words = [
        name.strip().casefold()
        for name, cells in zip(names, columns, strict=False)
        if name.strip()
        and any(cells)
        and all(_number(cell) is not None for cell in cells if cell.strip())
    ]
    unlike = len(words) > 1 and len({*words}) == len(words) and not {*words} & _MISSING
    text = all(any(letter.isalpha() for letter in word) for word in words)
    below = any(name in cells for name, cells in zip(names, columns, strict=False) if name)
    certain = unlike and text and not below and True not in told
    return Header(names) if certain else tuple(names)


def _is_at_home(name: str, cells: Sequence[str]) -> bool | None:
    """Return whether a name is like the cells of its column, None where they do not tell."""
    filled = [cell for cell in cells if cell]
    known, own = [n for n in map(_number, filled) if n is not None], _number(name)
    if filled and len(known) == len(filled):
        low, high = min(known), max(known)
        return own is not None and 2 * low - high <= own <= 2 * high - low
    return name in filled if 2 * len({*filled}) <= len(filled) else None


def check_unique(names: Sequence[str]) -> None:
    """Check that no two columns have the same name (InputError)."""
    repeated = {name for name, count in Counter(names).items() if count > 1}
    if repeated:
        places = [str(place) for place, name in enumerate(names, start=1) if name in repeated]
        named = [name for name in names if name.strip()]
        if len(names) > 2 and len(named) == 1:
            raise InputError(
                f"The first line must name the columns, and names one of {len(names)} only: delete "
                "titles and comments above the names."
            )
        more = f" and {len(places) - _MOST_NAMES} more" if len(places) > _MOST_NAMES else ""
        nameless = " have no name" if not any(map(str.strip, repeated)) else " do not"
        raise InputError(
            "Every column must have a name of its own; columns "
            f"{', '.join(places[:_MOST_NAMES])}{more}{nameless}."
        )


@dataclass(frozen=True)
class Roles:
    """The columns of a release by name: a label, perhaps a truth, an id and groups; features."""

    label: str
    truth: str | None
    identifier: str | None
    group: str | None
    features: tuple[str, ...]

    @property
    def special(self) -> tuple[str, ...]:
        """The columns that are no features, the label first."""
        others = (self.label, self.truth, self.identifier, self.group)
        return tuple(dict.fromkeys(name for name in others if name is not None))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say whose row it is."""
        others = (self.identifier, self.group)
        return tuple(dict.fromkeys(name for name in others if name is not None))


def assign_roles(
    names: Sequence[str],
    *,
    label: str | None = None,
    declared_label: str | None = None,
    truth_column: str | None = None,
    id_column: str | None = None,
    group: str | None = None,
    drop: Collection[str] = (),
    features: Collection[str] | None = None,
) -> Roles:
    """Give every column its role; the ids may be the groups."""
    # Features are those that are asked for (None: all that have no other role) and not dropped.
    chosen = label or declared_label or DEFAULT_LABEL
    if chosen not in names:
        advice, typed = "name the released label's column.", bool(label) or declared_label is None
        raise missing_column(chosen, "label", names, advice, typed=typed)
    for name, role in ((truth_column, "true label"), (id_column, "id"), (group, "group")):
        if name is not None and name not in names:
            raise missing_column(name, role, names)
    roles = Roles(chosen, truth_column, id_column, group, ())
    given = [name for name in (chosen, truth_column, id_column) if name is not None]
    if len(set(given)) < len(given):
        raise InputError("The label, the true label and the id must be different columns.")
    if group is not None and group in (chosen, truth_column):
        raise InputError("The group (--group) must be another column than the labels.")
    asked = [("drop", "to drop", drop, roles.special[:1])]
    asked += [("features", "to use as a feature", features or (), roles.special)]
    known = set(names)
    for option, purpose, some, taken in asked:
        if isinstance(some, str):
            raise InputError(
                f"The {option!r} parameter must be a list of column names, not one text."
            )
        for name in some:
            if name not in known:
                raise missing_column(name, purpose, names)
            if name in taken:
                raise InputError(
                    f"The column {quoted(name)} has another role; it cannot be in {option!r}."
                )
    wanted = set(names if features is None else features) - set(drop) - set(roles.special)
    own = tuple(name for name in names if name in wanted)
    return Roles(chosen, truth_column, id_column, group, own)
