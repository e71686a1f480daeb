"""The page of limits: the constants of ldpaudit/work/limits.py, with what stands below each."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ldpaudit.work import limits


def page() -> str:
    """Return the page of all limits on what is read."""
    rows = "\n".join(f"- {what}: {value}" for what, value in rows_of(limits))
    return (
        "# Limits\n\n"
        "Larger input is refused with one line and exit status 2, before memory or minutes\n"
        "are spent on it.\n\n"
        f"At most:\n\n{rows}\n"
    )


def rows_of(module: Any) -> Iterator[tuple[str, str]]:
    """Yield what each limit of a module is about, and its value."""
    source = ast.parse(inspect.getsource(module))
    for stated, said in pairwise(source.body):
        if isinstance(stated, ast.AnnAssign) and isinstance(said, ast.Expr):
            assert isinstance(stated.target, ast.Name)
            assert isinstance(said.value, ast.Constant)
            name = stated.target.id
            what = " ".join(str(said.value.value).split()).rstrip(".")
            yield what, _shown(getattr(module, name), name)


def _shown(value: Any, name: str) -> str:
    if isinstance(value, tuple):
        return " to ".join(f"{end:g}" for end in value)
    if name.endswith(("BYTES", "FREE")):
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value >= size:
                return f"{value / size:g} {unit}"
    return f"{value:,}"
