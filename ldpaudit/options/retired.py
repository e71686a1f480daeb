"""Options of earlier versions, and what to know instead."""

from collections.abc import Mapping
from typing import Final

RETIRED: Final[Mapping[str, str]] = {
    "--resume": "an audit is given again from its start; sweep --resume goes on with its points",
    "--reference": "the exact optimum needs no linear program to compare with",
    "--budget": "all attacks run, on samples of the rows",
    "--thorough": "all attacks run, on samples of the rows",
    "--show-class-names": "internal pages show names",
}
"""What became of each, by its name on the command line."""


def retired(name: str) -> str | None:
    """Return the line for an option of an earlier version; None for any other.

    ``name``: as on the command line, as a keyword of Python, or as a variable.
    """
    option = "--" + name.removeprefix("LDPAUDIT_").lstrip("-").replace("_", "-").lower()
    return f"The option {option} is gone: {RETIRED[option]}." if option in RETIRED else None
