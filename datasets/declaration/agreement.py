"""Whether what a file declares and what the options claim are the same."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ldpaudit.datasets.labels import canonical
from ldpaudit.errors import InputError
from ldpaudit.release import ColumnsDeclaration, Declaration

AGREEMENT = 1e-6
"""Numbers that differ by less are the same number."""


def agreed(of_file: Declaration | None, given: Declaration | None) -> Declaration | None:
    """Return the claim that a file and the options state together.

    The mechanism's name, and every parameter that both state, must agree (``epsilon`` in one and
    ``lambda`` in the other are compared where the mechanism is built).

    Raises
    ------
    InputError
        If they differ.
    """
    if of_file is None or given is None:
        return of_file or given
    ours, theirs = of_file.parameters, given.parameters
    differ = _different(of_file, given, ours.keys() & theirs.keys())
    if of_file.name != given.name or differ:
        raise _differ("mechanism" if of_file.name != given.name else "mechanism's parameters")
    return replace(of_file, parameters={**theirs, **ours})


def agreed_vectors(
    of_file: ColumnsDeclaration | None, given: ColumnsDeclaration | None
) -> ColumnsDeclaration | None:
    """Return the claims about several columns that a file and the options state together.

    A column of which only one of the two says something has that one's claim.

    Raises
    ------
    InputError
        If they differ.
    """
    if of_file is None or given is None:
        return of_file or given
    if (of_file.joint is None) != (given.joint is None):
        raise _differ("mechanism")
    theirs, labels = {one.label: one for one in given.labels}, []
    for one in of_file.labels:
        other = theirs.pop(one.label, one)
        if one.by != other.by:
            raise _differ("column of strata")
        labels.append(replace(one, mechanism=agreed(one.mechanism, other.mechanism)))
    if theirs:
        raise InputError(
            f"The options claim something about {len(theirs)} of the private columns that the "
            "file's declaration does not name; leave out the options, or correct the declaration."
        )
    return replace(of_file, labels=tuple(labels), joint=agreed(of_file.joint, given.joint))


def _differ(what: str) -> InputError:
    return InputError(
        f"The file declares one {what} and the options another; leave out the options, or "
        f"correct the declaration."
    )


def same_claim(one: Declaration | None, other: Declaration | None) -> bool:
    """Return whether two declarations state the same mechanism with the same parameters."""
    if one is None or other is None:
        return one is other
    keys = one.parameters.keys() | other.parameters.keys()
    return one.name == other.name and not _different(one, other, keys)


def same_claims(one: ColumnsDeclaration, other: ColumnsDeclaration) -> bool:
    """Return whether two declarations state the same of the same columns, in the same order."""
    ours, theirs = (tuple((c.label, c.by) for c in which.labels) for which in (one, other))
    pairs = zip(one.labels, other.labels, strict=False)
    columns = all(same_claim(a.mechanism, b.mechanism) for a, b in pairs)
    return ours == theirs and columns and same_claim(one.joint, other.joint)


def _different(one: Declaration, other: Declaration, keys: Collection[str]) -> list[str]:
    ours, theirs = one.parameters, other.parameters
    return [key for key in keys if not _same(ours.get(key), theirs.get(key))]


def _same(one: Any, other: Any) -> bool:
    one, other = (
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for value in (one, other)
    )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool | str) or isinstance(other, bool | str):
        plain = isinstance(one, str | int | float) and isinstance(other, str | int | float)
        return plain and canonical(one) == canonical(other)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=AGREEMENT, abs_tol=AGREEMENT)
    return bool(one == other)
