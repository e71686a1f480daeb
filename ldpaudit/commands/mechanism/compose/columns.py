"""The privacy of several files of the same people, each with one private column or several."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ldpaudit.commands.mechanism.compose.work import analyse_jointly
from ldpaudit.commands.mechanism.describe.result import Analysis
from ldpaudit.commands.mechanism.describe.several import analyse_several
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.mechanisms.joint import OnDomains
from ldpaudit.mechanisms.joint import from_declaration as joint_of
from ldpaudit.release import ColumnsDeclaration

_TOGETHER: Final = "columns released together"
_NO_DELTA: Final = "δ(ε) is not computed for several columns."


def analyse_columns(files: Sequence[ColumnsDeclaration]) -> Analysis:
    """Return the privacy of everything that files with new noise reveal of a person.

    Columns with noise of their own are composed over the files, each by itself, and their ε is
    added up; one mechanism for several columns counts by its own ε.

    Raises
    ------
    InputError
        If a column's releases cannot be composed, with the reason.
    """
    over: dict[str, list[Mechanism]] = {}
    parts: list[tuple[str, Analysis]] = []
    for declared in files:
        if declared.joint is not None:
            joint = joint_of(declared, [()] * len(declared.labels))
            assert isinstance(joint, OnDomains)
            parts.append((_TOGETHER, analyse_several(joint)))
            continue
        for one in declared.labels:
            over.setdefault(one.label, []).append(from_declaration(one.mechanism, ()))
    for name, mechanisms in over.items():
        try:
            parts.append((name, analyse_jointly(mechanisms)))
        except InputError as error:
            raise InputError(f"Column {name}: {error}") from None
    total = math.fsum(one.epsilon for _, one in parts)
    # Of one mechanism for several columns the worst pair may differ from release to release.
    apart = len(parts) == 1 or all(name != _TOGETHER for name, _ in parts)
    exact = apart and all(one.kind == "exact" for _, one in parts)
    curves = [dict(one.rdp) for _, one in parts]
    orders = [a for a in curves[0] if all(a in curve for curve in curves)]
    return Analysis(
        mechanism="composition",
        description=f"{len(over) or len(files[0].labels)} private columns over {len(files)} "
        f"release{'s' * (len(files) > 1)} of the same people",
        kind="exact" if exact else "upper bound",
        epsilon=total,
        total_variation=math.nan,
        delta=(),
        rdp=tuple((alpha, math.fsum(curve[alpha] for curve in curves)) for alpha in orders),
        parametrisations={"epsilon": total, **_named(parts)},
        parameters={},
        notes=(_NO_DELTA,),
    )


def _named(parts: Sequence[tuple[str, Analysis]]) -> Mapping[str, float]:
    """Return the ε of each column; of columns released together that of all their releases."""
    found: dict[str, float] = {}
    for name, one in parts:
        key = f"ε of {name}" if name == _TOGETHER else f"ε of column {name}"
        found[key] = found.get(key, 0.0) + one.epsilon
    return found
