"""Columns that only number the rows: released, they lead back to where the rows come from."""

import re
from collections.abc import Sequence
from typing import Final

_PANDAS_INDEX: Final = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name, which it writes as a column unasked."""


def index_warnings(released: Sequence[str]) -> tuple[str, ...]:
    """Return a warning for each pandas index among the columns that are to be released."""
    return tuple(
        f"The column {name} is the index of a pandas table and is released too: it may lead back "
        f"to the rows' origin. Leave it out with --drop {name}."
        for name in released
        if _PANDAS_INDEX.fullmatch(name)
    )
