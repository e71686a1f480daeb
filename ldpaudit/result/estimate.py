"""One number of a result: its title, and how sure it is."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, Self, TypedDict, TypeVar, Unpack

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

Kind = Literal["exact", "certified", "estimated"]
Side = Literal["lower", "upper", "two-sided"]
Unit = Literal[
    "nats",
    "proportion",
    "p-value",
    "rows",
    "people",
    "label units",
    "squared label units",
    "log-odds",
    "1",
]
AxisName = Literal["epsilon", "divergence", "share of people"]
"""Numbers of one axis are drawn in one picture, whatever section they are of."""
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9_]+([.-][a-z0-9_]+)*$", max_length=120)]


def _no_nan(value: float) -> float:
    if math.isnan(value):
        raise ValueError("A number of the result must not be NaN.")
    return value


_NUMBER_SCHEMA: Final = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
Number = Annotated[float, AfterValidator(_no_nan), WithJsonSchema(_NUMBER_SCHEMA)]
"""A float that is not NaN; infinities are written to JSON as the string "inf" or "-inf"."""


class Frozen(BaseModel):
    """A part of a result, a pydantic model: it cannot be changed, and has only declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __dir__(self) -> list[str]:
        inherited = set(dir(BaseModel))
        return [n for n in super().__dir__() if n not in inherited and not n.startswith("_")]


def readable(identifier: str) -> str:
    """Return words for an id without a title: ``"plug-in.share"`` becomes ``"Plug in share"``."""
    words = re.sub(r"[._-]+", " ", identifier).strip()
    return words[:1].upper() + words[1:]


class Titled(Frozen):
    """A stable, dotted id for other tools, and a title for people.

    Attributes
    ----------
    id
        The stable name for other tools.
    title
        The name for people; without one, the id is turned into words.
    """

    id: Identifier
    title: str = ""

    @model_validator(mode="before")
    @classmethod
    def _title_from_id(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("title"):
            return data
        return data | {"title": readable(str(data.get("id", "")))}


class Quantified(Titled):
    """What estimates, curves and histograms have in common.

    Attributes
    ----------
    section : str
        The part of a report that shows it: the id of its audit, which the pipeline fills in, or
        another one.
    kind : {"exact", "certified", "estimated"}
        Exact: from the declared mechanism alone. Certified: a confidence bound at its level, under
        the assumptions listed. Estimated: holds only as far as the assumptions do.
    axis : {"epsilon", "divergence", "share of people"} or None
        The picture that it is drawn in beside others.
    method, assumptions, reference
        For people: how, under what, and from which source (with the equation).
    """

    section: str = ""
    kind: Kind
    axis: AxisName | None = None
    method: str = ""
    assumptions: tuple[str, ...] = ()
    reference: str | None = None


class Score(Frozen):
    """Whose score of what an estimate is: a row and a column in a table of scores.

    Attributes
    ----------
    subject, measure : str
        Stable names of what is scored and by what, for instance ``"bayes"``, ``"accuracy"``.
    row, column : str
        Their titles; with a ``group`` the row is the group's.
    group : str
        The rows that it is scored on, for instance ``"class-2"``; empty for all of them.
    """

    subject: str
    measure: str
    row: str
    column: str
    group: str = ""

    @property
    def title(self) -> str:
        """What people call the score."""
        return f"{self.row}: {self.column}"


class Details(TypedDict, total=False):
    """What a number may state besides its value."""

    section: str
    axis: AxisName | None
    score: Score
    unit: Unit
    n: int | None
    count: int | None
    method: str
    assumptions: tuple[str, ...]
    reference: str | None


class Bounded(Details, total=False):
    """The same, and the kind of a bound that is not certified."""

    kind: Kind


_CERTIFIED: Final = {"kind": "certified"}


class Estimate(Quantified):
    """One number, what it may be called, and how sure it is.

    Built by :meth:`exact`, :meth:`estimated`, :meth:`lower_bound`, :meth:`upper_bound` and
    :meth:`interval`. What each of them takes as ``details`` are the attributes ``section``,
    ``axis``, ``score``, ``unit``, ``n``, ``count``, ``method``, ``assumptions`` and ``reference``.

    Attributes
    ----------
    id : str
        The stable name for other tools.
    title : str
        The name for people; without one, the id is turned into words.
    section : str
        The part of a report that shows it: the id of its audit, which the pipeline fills in, or
        another one.
    kind : {"exact", "certified", "estimated"}
        Exact: from the declared mechanism alone. Certified: a confidence bound at its level, under
        the assumptions listed. Estimated: holds only as far as the assumptions do.
    axis : {"epsilon", "divergence", "share of people"} or None
        The picture that it is drawn in beside others.
    method, assumptions, reference
        For people: how, under what, and from which source (with the equation).
    value : float
        The number; for a one-sided bound the bound itself.
    low, high : float or None
        Ends of the interval; None on a side that is not bounded.
    side : {"lower", "upper", "two-sided"} or None
        Which ends are confidence bounds; None for an exact number.
    level : float or None
        The confidence, for instance 0.95, of the interval as a whole.
    unit : str
        ``nats``, ``proportion``, ``p-value``, ``rows``, ``people``, ``log-odds``, units of labels
        or ``1``.
    n, count : int or None
        The counted denominator and numerator, None where there is none.
    score : Score or None
        Where it is one of a table of scores.
    """

    value: Number
    low: Number | None = None
    high: Number | None = None
    side: Side | None = None
    level: Annotated[float, Field(gt=0, lt=1)] | None = None
    unit: Unit = "1"
    n: Annotated[int, Field(ge=0)] | None = None
    count: Annotated[int, Field(ge=0)] | None = None
    score: Score | None = None

    @classmethod
    def exact(cls, name: str, title: str, value: float, **details: Unpack[Details]) -> "Estimate":
        """Return a number that follows from the declaration alone: its ``kind`` is exact.

        ``name`` is its id, ``title`` what people call it, ``value`` the number, in the ``unit`` of
        the ``details``.
        """
        return cls._of(name, title, value, {"kind": "exact", **details})

    @classmethod
    def estimated(
        cls, name: str, title: str, value: float, **details: Unpack[Details]
    ) -> "Estimate":
        """Return a number without an interval that holds only as far as its assumptions do.

        ``name`` is its id, ``title`` what people call it, ``value`` the number, in the ``unit`` of
        the ``details``.
        """
        return cls._of(name, title, value, {"kind": "estimated", **details})

    @classmethod
    def lower_bound(
        cls, name: str, title: str, bound: float, level: float, **details: Unpack[Bounded]
    ) -> "Estimate":
        """Return a lower bound; certified unless the ``details`` state another ``kind``.

        ``bound`` lies at or below the true number with a probability of at least ``level``, in
        (0, 1). ``name`` is its id, ``title`` what people call it.
        """
        ends = {"low": bound, "side": "lower", "level": level}
        return cls._of(name, title, bound, {**_CERTIFIED, **ends, **details})

    @classmethod
    def upper_bound(
        cls, name: str, title: str, bound: float, level: float, **details: Unpack[Bounded]
    ) -> "Estimate":
        """Return an upper bound; certified unless the ``details`` state another ``kind``.

        ``bound`` lies at or above the true number with a probability of at least ``level``, in
        (0, 1). ``name`` is its id, ``title`` what people call it.
        """
        ends = {"high": bound, "side": "upper", "level": level}
        return cls._of(name, title, bound, {**_CERTIFIED, **ends, **details})

    @classmethod
    def interval(
        cls,
        name: str,
        title: str,
        value: float,
        ends: tuple[float, float],
        level: float,
        **details: Unpack[Bounded],
    ) -> "Estimate":
        """Return a two-sided interval; certified unless the ``details`` state another ``kind``.

        Its ``ends``, lower and upper, hold the true number between them with a probability of at
        least ``level``, in (0, 1). ``value`` lies between them. ``name`` is its id, ``title`` what
        people call it.
        """
        fields = {"low": ends[0], "high": ends[1], "side": "two-sided", "level": level}
        return cls._of(name, title, value, {**_CERTIFIED, **fields, **details})

    @classmethod
    def _of(cls, name: str, title: str, value: float, fields: dict[str, Any]) -> "Estimate":
        return cls.model_validate({"id": name, "title": title, "value": value, **fields})

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        slack = 1e-9 * max(1.0, abs(self.value)) if math.isfinite(self.value) else 0.0
        if self.low is not None and self.low > self.value + slack:
            raise ValueError(f"{self.id}: the lower end lies above the value.")
        if self.high is not None and self.high < self.value - slack:
            raise ValueError(f"{self.id}: the upper end lies below the value.")
        if self.kind == "certified" and (self.level is None or self.side is None):
            raise ValueError(f"{self.id}: a certified number states its level and side.")
        if self.kind == "exact" and self.level is not None:
            raise ValueError(f"{self.id}: an exact number has no level.")
        return self


class Curve(Quantified):
    """A number as a function of one variable, for instance J(τ) or an RDP curve.

    Attributes
    ----------
    id : str
        The stable name for other tools.
    title : str
        The name for people; without one, the id is turned into words.
    section : str
        The part of a report that shows it: the id of its audit, which the pipeline fills in, or
        another one.
    kind : {"exact", "certified", "estimated"}
        Exact: from the declared mechanism alone. Certified: a confidence bound at its level, under
        the assumptions listed. Estimated: holds only as far as the assumptions do.
    axis : {"epsilon", "divergence", "share of people"} or None
        The picture that it is drawn in beside others.
    method, assumptions, reference
        For people: how, under what, and from which source (with the equation).
    x
        The variable, in increasing order.
    value
        The number at each of them.
    low
        Lower ends of the intervals; None without.
    high
        Upper ends of the intervals; None without.
    side
        Which ends are confidence bounds.
    level
        The confidence of the intervals.
    simultaneous
        Whether ``level`` holds for the whole curve at once, not for each point alone.
    x_label
        What the variable is.
    unit
        The unit of the values.
    n
        Rows behind it.
    """

    x: tuple[Number, ...]
    value: tuple[Number, ...]
    low: tuple[Number, ...] | None = None
    high: tuple[Number, ...] | None = None
    side: Side | None = None
    level: Annotated[float, Field(gt=0, lt=1)] | None = None
    simultaneous: bool = False
    x_label: str = ""
    unit: Unit = "1"
    n: Annotated[int, Field(ge=0)] | None = None

    def bound_key(self, place: int) -> str:
        """Return the key in ``Finding.bounds`` of the bound at ``x[place]``."""
        return f"{self.id}@{self.x[place]:g}"

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        for part in (self.value, self.low, self.high):
            if part is not None and len(part) != len(self.x):
                raise ValueError(f"{self.id}: the parts of a curve must have one length.")
        return self


class Histogram(Quantified):
    """Counts of rows in bins.

    Attributes
    ----------
    edges
        The b + 1 bin edges, in the unit of the variable; the outer ones may be infinite.
    counts
        People in each bin.
    unit
        The unit of the variable.
    x_label
        What the variable is.
    """

    edges: tuple[Number, ...]
    counts: tuple[int, ...]
    unit: Unit = "nats"
    x_label: str = ""

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{self.id}: a histogram has one edge more than bins.")
        return self


Q = TypeVar("Q", bound=Quantified)


class Note(Frozen):
    """One sentence for people: a limit, an assumption, what was sampled; never any data.

    Attributes
    ----------
    audit
        The audit that it is of.
    text
        The sentence.
    level
        Whether it is a warning.
    """

    audit: Identifier
    text: str
    level: Literal["info", "warning"] = "info"

    @classmethod
    def info(cls, audit: str, text: str) -> "Note":
        """Return a remark of the audit with the id ``audit``: one sentence, its ``text``."""
        return cls(audit=audit, text=text)

    @classmethod
    def warning(cls, audit: str, text: str) -> "Note":
        """Return a warning of the audit with the id ``audit``: one sentence, its ``text``."""
        return cls(audit=audit, text=text, level="warning")


AtLevel = Callable[[float], float]
"""From a one-sided error probability alpha in (0, 1) to a bound at confidence 1 − alpha."""


@dataclass(frozen=True)
class Bound:
    """A bound that a check may ask for at any error probability, as one of several proofs.

    Attributes
    ----------
    id : str
        The id of the number, or of one point of a curve (:meth:`Curve.bound_key`).
    at : callable
        From a one-sided error probability ``alpha`` in (0, 1) to the bound at confidence
        1 − ``alpha``.
    shown : Estimate or Curve or None
        The number that the result holds, at the audit's own confidence; None where another shows
        it, or nothing does.
    """

    id: str
    at: AtLevel
    shown: "Estimate | Curve | None" = None

    @classmethod
    def of(cls, shown: Estimate, at: AtLevel) -> "Bound":
        """Return the bound that an estimate shows at the audit's confidence."""
        return cls(shown.id, at, shown)


@dataclass(frozen=True)
class Finding:
    """What one audit returns; the pipeline puts the findings into one ``AuditResult``.

    Attributes
    ----------
    estimates, curves, histograms, notes : tuples
        Numbers, functions of one variable, counts in bins, and sentences for people; anything that
        yields them is kept as a tuple.
    bounds : mapping from estimate id to a function
        For a certified estimate, a function from a one-sided error probability ``alpha`` in (0, 1)
        to the bound at confidence 1 - alpha. The policy needs it to correct for several checks; the
        result does not store it.
    """

    estimates: tuple[Estimate, ...] = ()
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[Note, ...] = ()
    bounds: Mapping[str, AtLevel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("estimates", "curves", "histograms", "notes"):
            # What a generator yields can be looked at only once.
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def in_section(self, section: str) -> "Finding":
        """Return the finding with its numbers in the ``section``, unless they name another."""
        return replace(
            self,
            estimates=_placed(self.estimates, section),
            curves=_placed(self.curves, section),
            histograms=_placed(self.histograms, section),
        )


def merged(findings: Iterable[Finding]) -> Finding:
    """Return several findings as one."""
    estimates, curves, histograms = list[Estimate](), list[Curve](), list[Histogram]()
    notes, bounds = list[Note](), dict[str, AtLevel]()
    for finding in findings:
        estimates += finding.estimates
        curves += finding.curves
        histograms += finding.histograms
        notes += finding.notes
        bounds |= finding.bounds
    return Finding(tuple(estimates), tuple(curves), tuple(histograms), tuple(notes), bounds)


def _placed(parts: tuple[Q, ...], section: str) -> tuple[Q, ...]:
    return tuple(p if p.section else p.model_copy(update={"section": section}) for p in parts)
