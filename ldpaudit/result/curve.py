"""Curves and histograms of a result."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from ldpaudit.result.estimate import Number, Quantified, Side, Unit


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
    """Counts of rows in bins."""

    edges: tuple[Number, ...]
    """The b + 1 bin edges, in the unit of the variable; the outer ones may be infinite."""
    counts: tuple[int, ...]
    """People in each bin."""
    unit: Unit = "nats"
    """The unit of the variable."""
    x_label: str = ""
    """What the variable is."""

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{self.id}: a histogram has one edge more than bins.")
        return self
