"""Curves and histograms of a result; small bins of a histogram never exist."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from ldpaudit.result.estimate import Number, Quantified, Side, Unit
from ldpaudit.result.hiding import is_small


class Curve(Quantified):
    """A number as a function of one variable, for instance J(τ) or an RDP curve."""

    x: tuple[Number, ...]
    """The variable, in increasing order."""
    value: tuple[Number, ...]
    """The number at each of them."""
    low: tuple[Number, ...] | None = None
    """Lower ends of the intervals; None without."""
    high: tuple[Number, ...] | None = None
    """Upper ends of the intervals; None without."""
    side: Side | None = None
    """Which ends are confidence bounds."""
    level: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The confidence of the intervals."""
    simultaneous: bool = False
    """Whether ``level`` holds for the whole curve at once, not for each point alone."""
    x_label: str = ""
    """What the variable is."""
    unit: Unit = "1"
    """The unit of the values."""
    n: Annotated[int, Field(ge=0)] | None = None
    """Rows behind it."""

    def bound_key(self, place: int) -> str:
        """Return the key in ``Finding.bounds`` of the bound at one grid point."""
        return f"{self.id}@{self.x[place]:g}"

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        for part in (self.value, self.low, self.high):
            if part is not None and len(part) != len(self.x):
                raise ValueError(f"{self.id}: the parts of a curve must have one length.")
        return self


class Histogram(Quantified):
    """Counts of rows in bins; neighbouring bins are merged until none holds 1 to 9 rows."""

    edges: tuple[Number, ...]
    """The b + 1 bin edges, in the unit of the variable; the outer ones may be infinite."""
    counts: tuple[int, ...]
    """People in each bin."""
    unit: Unit = "nats"
    """The unit of the variable."""
    x_label: str = ""
    """What the variable is."""

    @model_validator(mode="before")
    @classmethod
    def _merge_small_bins(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        edges, counts = list(data["edges"]), [int(c) for c in data["counts"]]
        while len(counts) > 1:
            small = [i for i, c in enumerate(counts) if is_small(c)]
            if not small:
                break
            left = small[0] if small[0] + 1 < len(counts) else small[0] - 1
            counts[left : left + 2] = [counts[left] + counts[left + 1]]
            del edges[left + 1]
        if len(counts) == 1 and is_small(counts[0]):
            counts = [0]
        return dict(data) | {"edges": tuple(edges), "counts": tuple(counts)}

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{self.id}: a histogram has one edge more than bins.")
        return self
