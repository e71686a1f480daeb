"""Column names in messages: shortened, harmless, and the nearest one to a misspelt name."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

from ldpaudit.errors import SHOWN_LENGTH, InputError, quoted

__all__ = ["check_unique", "missing_column", "nearest", "quoted"]
_OTHER_SEPARATORS = (";", "\t", "|")


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is spelt most like ``name``, None where none is alike."""
    folded = {c[:SHOWN_LENGTH].casefold(): c for c in candidates}
    found = difflib.get_close_matches(name[:SHOWN_LENGTH].casefold(), folded, n=1)
    return folded[found[0]] if found else None


def missing_column(name: str, role: str, candidates: Sequence[str], advice: str = "") -> InputError:
    """Return the error for a column that is not there; it names the nearest one.

    Parameters
    ----------
    name : str
        The column that was asked for.
    role : str
        What it was to be, for instance ``"label"``.
    candidates : sequence of str
        The columns that there are.
    advice : str
        What to do, where no column is alike.
    """
    close = nearest(name, candidates)
    if len(candidates) == 1 and any(mark in candidates[0] for mark in _OTHER_SEPARATORS):
        end = "is it a CSV file whose fields are not separated by commas? Write it with commas."
    else:
        end = f"did you mean {quoted(close)}?" if close is not None else advice
    text = f"There is no {role} column {quoted(name)} among the {len(candidates)} columns"
    return InputError(f"{text}; {end}" if end else f"{text}.")


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
