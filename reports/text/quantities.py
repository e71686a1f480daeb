"""Estimates as people read them: number, kind, level, side, rounded to agree with the verdict."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ldpaudit.result import AuditResult, Check, Curve, Estimate
from ldpaudit.result.harmless import shown
from ldpaudit.result.numbers import (
    Direction,
    against,
    as_percent,
    digits_apart,
    number,
    percent,
    rows,
    toward,
)

Mark = Literal["exact", "lower", "upper", "interval", "estimated"]
"""How a number is drawn, in text and in charts: a shape for each."""

_EPSILON = (
    "person.epsilon_lower",
    "person.release_only_epsilon_lower",
    "mechanism.epsilon_lower",
    "release_only.epsilon_lower",
)
"""Bounds of ε, that of the most first."""
_SIDES = {"lower": "lower bound", "upper": "upper bound", "two-sided": "two-sided"}


@dataclass(frozen=True)
class Quantity:
    """One estimate, ready to be printed."""

    estimate: Estimate
    """Where it comes from."""
    name: str
    """What it is called."""
    text: str
    """The number with its relation, for instance ``"≥ 0.963"``."""
    interval: str
    """Its ends where it has two, for instance ``"0.846 to 0.852"``; else empty."""
    mark: Mark
    """Its shape."""
    words: str
    """Kind, level and side, for instance ``"certified, 95 %, lower bound"``."""

    @property
    def id(self) -> str:
        """The id of the estimate."""
        return self.estimate.id

    @property
    def ends(self) -> list[float]:
        """Its value and the ends of its interval."""
        estimate = self.estimate
        return [e for e in (estimate.low, estimate.value, estimate.high) if e is not None]

    @property
    def percent(self) -> str:
        """A share with its relation as a percentage, for instance ``"≥ 90.0 %"``."""
        return as_percent(self.text)

    @property
    def points(self) -> str:
        """A difference of shares in percentage points, without a sign of percent."""
        return self.percent.removesuffix("\u00a0%")

    @property
    def unit(self) -> str:
        """The unit to print after the number, or nothing."""
        if "∞" in self.text:
            return ""
        unit = self.estimate.unit
        if unit not in ("nats", "rows", "people", "log-odds"):
            return ""
        one = {"nats": "nat", "rows": "row", "people": "person"} if self.text == "1" else {}
        return one.get(unit, unit)


def measured_called(measured: Iterable[Quantity]) -> str:
    """Return what measured ε are called together: as the weakest of them may be.

    Proven so far: certified lower bounds. Measured so far: some are lower bounds that are not
    certified. Measured: some are no bounds.
    """
    found = list(measured)
    if not found or any(one.estimate.side != "lower" for one in found):
        return "Measured ε"
    proven = all(one.estimate.kind == "certified" for one in found)
    return "Proven so far" if proven else "Measured so far"


class Printer:
    """Prints the numbers of one result, each the same wherever it appears."""

    def __init__(self, result: AuditResult) -> None:
        self._result = result

    def quantity(self, estimate: Estimate) -> Quantity:
        """Return an estimate as people read it."""
        ends = _ends(estimate)
        text, interval = self._texts(estimate, ends)
        title, words = shown(estimate.title), words_of(estimate)
        if self._is_uncorrected(estimate):
            words += ", uncorrected"
        return Quantity(estimate, title, text, interval, mark_of(estimate), words)

    def quantities(self, estimates: Iterable[Estimate]) -> tuple[Quantity, ...]:
        """Return several."""
        return tuple(self.quantity(estimate) for estimate in estimates)

    @cached_property
    def decisive(self) -> Quantity | None:
        """The bound of ε behind the verdict, at the level that the policy's correction leaves."""
        # None where the policy does not look at ε, or nothing bounds it.
        check = self._claimed_epsilon
        if check is None or check.observed is None or check.confidence is None:
            return None
        alone = self._uncorrected.get(check.observed)
        bounds = self._uncorrected.values()
        certified = not bounds or any(one.kind == "certified" for one in bounds)
        return self.quantity(
            alone
            or Estimate.lower_bound(
                "policy.epsilon_lower",
                "All together: this decides",
                check.observed,
                check.confidence,
                kind="certified" if certified else "estimated",
                axis="epsilon",
                unit="nats",
            )
        )

    @property
    def measured(self) -> Quantity | None:
        """The bound of ε behind the verdict, else the strongest that there is."""
        found = next(filter(None, map(self._result.estimate, _EPSILON)), None)
        return self.decisive or (None if found is None else self.quantity(found))

    @property
    def called(self) -> str:
        """What that bound is called: proven only if certified; no bound at all is a measurement."""
        return measured_called([] if self.measured is None else [self.measured])

    @cached_property
    def _claimed_epsilon(self) -> Check | None:
        return next((c for c in self._result.checks if c.id == "claimed-epsilon"), None)

    @cached_property
    def _uncorrected(self) -> dict[float, Estimate]:
        """The bounds that the check of the claim looks at, by their value at their own level."""
        ids = () if self._claimed_epsilon is None else self._claimed_epsilon.evidence
        bounds = [e for e in map(self._result.estimate, ids) if e is not None]
        return {e.value: e for e in bounds if e.side == "lower"}

    def _is_uncorrected(self, estimate: Estimate) -> bool:
        """Return whether a bound is at its own level, and the verdict at a corrected one."""
        check, stored = self._claimed_epsilon, self._result.estimate(estimate.id)
        if check is None or check.observed is None or stored is None:
            return False
        bound = estimate.kind == "certified" and estimate.side == "lower" and is_epsilon(estimate)
        return bound and estimate.value != check.observed

    @cached_property
    def claim(self) -> str:
        """The claimed ε; empty where nothing was claimed."""
        claimed = self._result.mechanism.epsilon
        if claimed is None:
            return ""
        ends = [end for e in self._result.estimates if is_epsilon(e) for end in _ends(e).values()]
        return number(claimed, "nearest", digits_apart(ends, [claimed]))

    def observed_and_limit(self, check: Check) -> tuple[str, str]:
        """Return what a check observed and its limit, "–" for a missing one."""
        if check.observed is None or check.limit is None:
            single = [check.observed, check.limit]
            observed, limit = ("–" if value is None else number(value) for value in single)
            return observed, limit
        direction = self._direction(check, check.observed, check.limit)
        return against(check.observed, check.limit, direction)

    def limits(self, identifier: str) -> list[float]:
        """Return the limits of the checks that rest on the number or curve of that id."""
        checks = (check for check in self._result.checks if identifier in check.evidence)
        return [check.limit for check in checks if check.limit is not None]

    def _direction(self, check: Check, observed: float, limit: float) -> Direction:
        if check.side in ("lower", "upper"):
            return "down" if check.side == "lower" else "up"
        for identifier in check.evidence:
            estimate = self._result.estimate(identifier)
            for value, direction in _ends(estimate).values() if estimate else ():
                if value == observed:
                    return direction
        return toward(observed, limit)

    def _texts(
        self, estimate: Estimate, ends: dict[str, tuple[float, Direction]]
    ) -> tuple[str, str]:
        digits = digits_apart(ends.values(), self._references(estimate))
        printed = {key: _print(estimate, *end, digits) for key, end in ends.items()}
        low, high = printed.get("low"), printed.get("high")
        if "value" not in printed:
            return (f"≥ {low}" if low is not None else f"≤ {high}"), ""
        if low is not None and high is not None:
            return printed["value"], f"{low} to {high}"
        one_end = f"≥ {low}" if low is not None else f"≤ {high}" if high is not None else ""
        return printed["value"], one_end

    def _references(self, estimate: Estimate) -> list[float]:
        """Return the limits that a reader will compare the number with."""
        references = self.limits(estimate.id)
        claimed = self._result.mechanism.epsilon
        if claimed is not None and is_epsilon(estimate):
            references.append(claimed)
        return references


def is_epsilon(estimate: Estimate) -> bool:
    """Return whether a number lies on the axis of ε: it bounds or estimates it."""
    return estimate.axis == "epsilon" and estimate.unit == "nats"


def mark_of(part: Estimate | Curve) -> Mark:
    """Return the shape of a number."""
    if part.kind != "certified":
        return part.kind
    if part.side == "two-sided":
        return "interval"
    return part.side or "interval"


def words_of(part: Estimate | Curve) -> str:
    """Return kind, level and side in words."""
    words: list[str] = [part.kind]
    if part.level is not None:
        words.append(percent(part.level).replace(" ", "\u00a0"))
    if part.side is not None:
        words.append(_SIDES[part.side])
    return ", ".join(words)


def _ends(estimate: Estimate) -> dict[str, tuple[float, Direction]]:
    """Return the numbers of an estimate that are printed, each with its rounding."""
    low, value, high = estimate.low, estimate.value, estimate.high
    if estimate.side == "lower" and low in (None, value):
        return {"low": (value, "down")}
    if estimate.side == "upper" and high in (None, value):
        return {"high": (value, "up")}
    towards: Direction = "up" if estimate.section == "power" else "nearest"
    ends: dict[str, tuple[float, Direction]] = {"value": (value, towards)}
    if low is not None:
        ends["low"] = (low, "down")
    if high is not None:
        ends["high"] = (high, "up")
    return ends


def _print(estimate: Estimate, value: float, direction: Direction, digits: int) -> str:
    if estimate.unit in ("rows", "people"):
        return rows(value, direction)
    return number(value, direction, digits)
