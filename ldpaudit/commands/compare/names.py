"""What the compared releases are called: file names, with as much of the folder as tells apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def told_apart(names: Sequence[str], inputs: Sequence[Any]) -> list[str]:
    """Return names that are all different.

    Parameters
    ----------
    names : sequence of str
        Of the released files.
    inputs : sequence
        What was read for each: files, folders, addresses, stored results, or tables in memory.

    Returns
    -------
    list of str
        The names; where some are alike, the shortest ends of their inputs that differ, never a
        whole path, or the names with a letter.
    """
    alike = [names.count(name) > 1 for name in names]
    # A table in memory has no place.
    parts = [Path(one).absolute().parts if isinstance(one, str | Path) else () for one in inputs]
    for length in range(1, max(map(len, parts))):
        # A name alone is no path; an end must leave a folder besides the root.
        ends = [
            "/".join(each[-length:]) if length == 1 or length < len(each) - 1 else ""
            for each in parts
        ]
        found = [end if same else name for end, same, name in zip(ends, alike, names, strict=True)]
        if all(found) and len(set(found)) == len(found):
            return found
    return [
        f"{name} ({chr(ord('A') + place)})" if same else name
        for place, (name, same) in enumerate(zip(names, alike, strict=True))
    ]
