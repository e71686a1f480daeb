"""The one result object: what an audit found, its JSON form, and its redaction.

No field can hold a row, a cell, a row id or a per-row score. Small cells are hidden when an
:class:`Estimate` or :class:`Histogram` is built, so nothing that is not redacted ever exists, and
no renderer has to think of it.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

SCHEMA_VERSION: Final = "1.0"
SMALLEST_CELL = 10
"""A count of rows above 0 and below this is never shown."""

Kind = Literal["exact", "certified", "estimated"]
Side = Literal["lower", "upper", "two-sided"]
Unit = Literal["nats", "proportion", "rows", "label units", "squared label units", "log-odds", "1"]
Verdict = Literal["pass", "fail", "inconclusive"]
CheckLevel = Literal["error", "warn"]

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9_]+([.-][a-z0-9_]+)*$", max_length=120)]


def _no_nan(value: float) -> float:
    if math.isnan(value):
        raise ValueError("A number of the result must not be NaN.")
    return value


_NUMBER_SCHEMA: Final = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
Number = Annotated[float, AfterValidator(_no_nan), WithJsonSchema(_NUMBER_SCHEMA)]
"""A float that is not NaN; infinities are written to JSON as the string "inf" or "-inf"."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _is_small(count: int, n: int | None) -> bool:
    rest = SMALLEST_CELL if n is None else n - count
    return 0 < count < SMALLEST_CELL or 0 < rest < SMALLEST_CELL


def _outward(value: float | None, grid: float, rounding: Callable[[float], int]) -> float | None:
    if value is None or math.isinf(value):
        return value
    return rounding(value / grid) * grid


class Estimate(_Frozen):
    """One number, what it may be called, and how sure it is.

    Attributes
    ----------
    id : str
        Stable, dotted; other tools may read it.
    kind : {"exact", "certified", "estimated"}
        Exact: from the declared mechanism alone. Certified: a confidence bound with no assumption
        beyond independent rows. Estimated: needs the assumptions listed.
    value : float
        The number; for a one-sided bound the bound itself.
    low, high : float or None
        Ends of the interval; None on a side that is not bounded.
    side : {"lower", "upper", "two-sided"} or None
        Which ends are confidence bounds; None for an exact number.
    level : float or None
        The confidence, for instance 0.95, of the interval as a whole.
    unit : str
        ``nats``, ``proportion``, ``rows``, ``log-odds`` or ``1``.
    n, count : int or None
        The counted denominator and numerator, None where there is none or it is suppressed.
    method, assumptions, reference
        For people: how, under what, and from which source (with the equation).
    suppressed : bool
        Whether a small cell (fewer than 10 rows, or all but fewer than 10) was behind the number:
        then ``n`` and ``count`` are hidden and the interval is rounded outward to ten rows.
    """

    id: Identifier
    kind: Kind
    value: Number
    low: Number | None = None
    high: Number | None = None
    side: Side | None = None
    level: Annotated[float, Field(gt=0, lt=1)] | None = None
    unit: Unit = "1"
    n: Annotated[int, Field(ge=0)] | None = None
    count: Annotated[int, Field(ge=0)] | None = None
    method: str = ""
    assumptions: tuple[str, ...] = ()
    reference: str | None = None
    suppressed: bool = False

    @model_validator(mode="before")
    @classmethod
    def _hide_small_cells(cls, data: Any) -> Any:
        """Hide counts under 10; ``smallest_cell`` names a small cell behind a derived number."""
        if not isinstance(data, dict) or data.get("suppressed"):
            return data
        data = dict(data)
        cell = data.pop("smallest_cell", None)
        count, n = data.get("count"), data.get("n")
        small = count is not None and _is_small(int(count), n)
        small = small or (cell is not None and 0 < cell < SMALLEST_CELL)
        if not small:
            return data
        proportion = data.get("unit") == "proportion" and n
        grid = min(SMALLEST_CELL / n, 1.0) if proportion else 0.01
        data["low"] = _outward(data.get("low"), grid, math.floor)
        data["high"] = _outward(data.get("high"), grid, math.ceil)
        # A one-sided bound is its own value, and both round to the safe side.
        nearest: Callable[[float], int] = round
        safe = {"lower": math.floor, "upper": math.ceil}.get(data.get("side") or "", nearest)
        data["value"] = _outward(data.get("value"), grid, safe)
        if proportion:
            for key in ("value", "low", "high"):
                if data.get(key) is not None:
                    data[key] = min(max(data[key], -1.0), 1.0)
        return data | {"n": None, "count": None, "suppressed": True}

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        slack = 1e-9 * max(1.0, abs(self.value)) if math.isfinite(self.value) else 0.0
        if not self.suppressed:
            if self.low is not None and self.low > self.value + slack:
                raise ValueError(f"{self.id}: the lower end lies above the value.")
            if self.high is not None and self.high < self.value - slack:
                raise ValueError(f"{self.id}: the upper end lies below the value.")
        if self.kind == "certified" and (self.level is None or self.side is None):
            raise ValueError(f"{self.id}: a certified number states its level and side.")
        if self.kind == "exact" and self.level is not None:
            raise ValueError(f"{self.id}: an exact number has no level.")
        return self


class Curve(_Frozen):
    """A number as a function of one variable, for instance J(τ) or an RDP curve."""

    id: Identifier
    kind: Kind
    x: tuple[Number, ...]
    value: tuple[Number, ...]
    low: tuple[Number, ...] | None = None
    high: tuple[Number, ...] | None = None
    side: Side | None = None
    level: Annotated[float, Field(gt=0, lt=1)] | None = None
    simultaneous: bool = False
    """Whether ``level`` holds for the whole curve at once, not for each point alone."""
    x_label: str = ""
    unit: Unit = "1"
    n: Annotated[int, Field(ge=0)] | None = None
    method: str = ""
    assumptions: tuple[str, ...] = ()
    reference: str | None = None

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        for part in (self.value, self.low, self.high):
            if part is not None and len(part) != len(self.x):
                raise ValueError(f"{self.id}: the parts of a curve must have one length.")
        return self


class Histogram(_Frozen):
    """Counts of rows in bins; neighbouring bins are merged until none holds 1 to 9 rows."""

    id: Identifier
    kind: Kind
    edges: tuple[Number, ...]
    """The b + 1 bin edges, in the unit of the variable; the outer ones may be infinite."""
    counts: tuple[int, ...]
    unit: Unit = "nats"
    x_label: str = ""
    method: str = ""
    assumptions: tuple[str, ...] = ()
    reference: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _merge_small_bins(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        edges, counts = list(data["edges"]), [int(c) for c in data["counts"]]
        while len(counts) > 1:
            small = [i for i, c in enumerate(counts) if 0 < c < SMALLEST_CELL]
            if not small:
                break
            left = small[0] if small[0] + 1 < len(counts) else small[0] - 1
            counts[left : left + 2] = [counts[left] + counts[left + 1]]
            del edges[left + 1]
        if len(counts) == 1 and 0 < counts[0] < SMALLEST_CELL:
            counts = [0]
        return dict(data) | {"edges": tuple(edges), "counts": tuple(counts)}

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{self.id}: a histogram has one edge more than bins.")
        return self


class Note(_Frozen):
    """One sentence for people: a limit, an assumption, what was sampled; never any data."""

    audit: Identifier
    text: str
    level: Literal["info", "warning"] = "info"


@dataclass(frozen=True)
class Finding:
    """What one audit returns; the pipeline puts the findings into one :class:`AuditResult`.

    Attributes
    ----------
    estimates, curves, histograms, notes : tuples
        Already redacted, since their types see to it.
    bounds : mapping from estimate id to a function
        For a certified estimate, a function from a one-sided error probability ``alpha`` in (0, 1)
        to the bound at confidence 1 - alpha. The policy needs it to correct for several checks. It
        stays in the process: the result does not store it.
    """

    estimates: tuple[Estimate, ...] = ()
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[Note, ...] = ()
    bounds: Mapping[str, Callable[[float], float]] = field(default_factory=dict)


class ReleaseInfo(_Frozen):
    """What was audited; names of columns and classes only if the user asked to show them."""

    name: str
    sha256: str | None
    rows: int
    features: int
    classes: int
    class_names: tuple[str, ...]
    label: str | None
    truth: bool


class MechanismInfo(_Frozen):
    """The mechanism as declared, with its exact privacy parameter."""

    name: str
    declared: Literal["file", "options", "policy", "api"] | None
    parameters: dict[str, Any]
    epsilon: Number | None
    description: str = ""


class Check(_Frozen):
    """One question of the policy and its answer."""

    id: Identifier
    question: str
    limit: Number | None
    observed: Number | None
    side: Side | None = None
    """Whether ``observed`` is a confidence bound, and which; None for a plain number."""
    verdict: Verdict
    level: CheckLevel
    confidence: float | None = None
    reason: str = ""
    waived: bool = False
    evidence: tuple[str, ...] = ()


class AuditRecord(_Frozen):
    """Whether an audit ran, and if not why."""

    id: Identifier
    status: Literal["ran", "skipped", "failed"]
    reason: str = ""
    seconds: float = 0.0


class RunInfo(_Frozen):
    """How to reproduce the audit."""

    seed: int | None
    command: str
    versions: dict[str, str]
    threads: int
    seconds: float
    policy_sha256: str | None = None


class AuditResult(_Frozen):
    """Everything that an audit found: the source of truth for every report format."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    ldpaudit_version: str
    verdict: Verdict
    sentence: str
    """The verdict for people, one sentence."""
    release: ReleaseInfo
    mechanism: MechanismInfo
    estimates: tuple[Estimate, ...]
    curves: tuple[Curve, ...]
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[Note, ...] = ()
    checks: tuple[Check, ...]
    audits: tuple[AuditRecord, ...]
    run: RunInfo

    def estimate(self, identifier: str) -> Estimate | None:
        """Return the estimate of that id, None where the audit did not produce it."""
        return next((e for e in self.estimates if e.id == identifier), None)

    def curve(self, identifier: str) -> Curve | None:
        """Return the curve of that id, None where the audit did not produce it."""
        return next((c for c in self.curves if c.id == identifier), None)

    def to_json(self, path: Path | str | None = None) -> str:
        """Return the result as JSON (sorted keys, full precision, "inf" for infinities).

        With a ``path`` the text is written there too, whole or not at all.
        """
        return self._render("json", path)

    def to_html(self, path: Path | str | None = None) -> str:
        """Return the report as one HTML page; with a ``path`` it is written there too."""
        return self._render("html", path)

    def _repr_html_(self) -> str:
        from ldpaudit.reports import embed

        return embed(self)

    def _render(self, format_name: str, path: Path | str | None) -> str:
        # The one import that goes up: methods for convenience, the report itself stays a function
        # of the result.
        from ldpaudit.reports import render
        from ldpaudit.writing import write_whole

        text = render(self, format_name)
        if path is not None:
            write_whole(Path(path), text)
        return text

    @classmethod
    def from_json(cls, text: str) -> "AuditResult":
        """Read a stored result.

        Raises
        ------
        ldpaudit.errors.InputError
            If the text is not the JSON of a result of this schema version.
        """
        from ldpaudit.errors import InputError

        try:
            return cls.model_validate(json.loads(text))
        except ValueError:
            raise InputError(
                f"The file must be an ldpaudit result of schema version {SCHEMA_VERSION}."
            ) from None
