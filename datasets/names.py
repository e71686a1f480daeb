"""Column names in messages: shortened, harmless, and the nearest one to a misspelt name."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from ldpaudit.errors import InputError, nearest, quoted

__all__ = ["check_unique", "column_of", "missing_column", "quoted", "text_of"]


def missing_column(
    name: object, role: str, candidates: Sequence[str], advice: str = ""
) -> InputError:
    """Return the error for a column that is not there; it names the nearest one.

    Parameters
    ----------
    name : str
        The column that was asked for; anything else is a mistake of its own.
    role : str
        What it was to be, for instance ``"label"``.
    candidates : sequence of str
        The columns that there are.
    advice : str
        What to do, where no column is alike.
    """
    if not isinstance(name, str):  # From Python; a data frame's column 5 is read as '5'.
        kind = type(name).__name__
        return InputError(f"The {role} column must be named by a text, as '5'. Got {kind} instead.")
    close = nearest(name, candidates)
    if any(map(_is_number, candidates)):  # Perhaps no names at all, but the first row.
        end = "does the file's first line name its columns?"
    else:
        end = f"did you mean {quoted(close)}?" if close is not None else advice
    text = f"There is no {role} column {quoted(name)} among the {len(candidates)} columns"
    return InputError(f"{text}; {end}" if end else f"{text}.")


def _is_number(name: str) -> bool:
    try:
        float(name.replace(",", "."))
    except ValueError:
        return False
    return True


def check_unique(names: Sequence[str]) -> None:
    """Check that no two columns have the same name.

    The message gives a count only: in a CSV file without a header the names are data.

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
        raise InputError(f"Private column {quoted(name)}: {error}") from None


@contextmanager
def text_of(name: str) -> Iterator[None]:
    """Name the column whose text cannot be decoded (InputError)."""
    try:
        yield
    except UnicodeDecodeError:
        raise InputError(f"The column {quoted(name)} must be text in UTF-8.") from None
