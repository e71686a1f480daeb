"""What a reader saw of a feature column before it became numbers."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy.typing as npt

ColumnKind = Literal["number", "category", "text", "date", "list", "nested"]
# Why a column may lead back to a person: it numbers the rows, names each, or holds free text or
# exact dates.
Concern = Literal["index", "identifier", "text", "date"]


@dataclass(frozen=True)
class ColumnSurvey:
    """What one feature column is like."""

    # ``name``: for messages to the column's owner; never part of a result, unless names were asked
    # for. ``distinct``: different values as a share of the (first 10,000) rows. ``unique``: whether
    # every row has a value of its own. ``ordered``: whether the rows are sorted by it. ``unused``:
    # values of its dictionary that no row has. ``arrays``: its places among the arrays of the
    # feature table, numeric ones first. ``concern``: why it may lead back to a person. ``place``:
    # its place among the columns of the file, from 1; 0 where that is not known. ``head``, array or
    # None: its (first 10,000) values as they are, where many differ and mean no measurement.

    name: str = field(repr=False)
    kind: ColumnKind
    distinct: float
    unique: bool = False
    ordered: bool = False
    unused: int = 0
    concern: Concern | None = None
    arrays: tuple[int, ...] = ()
    place: int = 0
    head: npt.NDArray[Any] | None = field(default=None, repr=False, compare=False)
