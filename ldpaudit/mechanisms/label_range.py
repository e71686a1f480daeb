"""Numeric labels: their range, and the losses between a true and a released one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError, decimal_point
from ldpaudit.mechanisms.parameters import check_finite, check_label_value, check_positive
from ldpaudit.release import FloatArray, IndexArray, IntArray, Label
from ldpaudit.work.limits import LABEL_VALUES

_ON_GRID: Final = 1e-6
_LARGEST_GRID: Final = 1 << 22


# squared: ½(ŷ − y)², the papers' convention with its factor ½; absolute: |ŷ − y|; poisson: the log
# loss ŷ − y log ŷ, with 0 log 0 = 0 and ∞ where ŷ < 0 or ŷ = 0 < y.
Loss = Literal["squared", "absolute", "poisson"]


def loss(name: Loss, output: FloatArray, truth: FloatArray) -> FloatArray:
    """Return ℓ(ŷ, y) entry by entry, float64 of the common shape of ``output`` and ``truth``."""
    # Ghazi et al. (2023), section 2.
    if name == "squared":
        return np.asarray(0.5 * np.square(output - truth))
    if name == "absolute":
        return np.asarray(np.abs(output - truth))
    if name not in get_args(Loss):
        words = ", ".join(get_args(Loss))
        raise InputError(f"The loss must be one of {words}. Got {name!r} instead.")
    if np.min(truth, initial=0.0) < 0:
        raise InputError("The Poisson log loss must be used with labels that are not negative.")
    output, truth = np.broadcast_arrays(output, truth)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.where(truth > 0, truth * np.log(output), 0.0)
    return np.where(output < 0, np.inf, output - logarithm)


@dataclass(frozen=True)
class LabelRange:
    """Labels between two bounds: those of a grid, or any number."""

    low: float
    high: float
    """``low`` and ``high``: the bounds, both possible labels; declared, never taken from the data.
    """
    step: float | None = None
    """The distance of neighbouring labels low, low + step, …, high; None for any real number."""

    def __post_init__(self) -> None:
        low = check_label_value(check_finite("low", self.low))
        high = check_label_value(check_finite("high", self.high))
        if not low < high:
            raise InputError("The lowest label must lie below the highest.")
        step = None if self.step is None else check_positive("step", self.step)
        if min(high - low, step or math.inf) < LABEL_VALUES[0]:
            raise InputError(
                f"The labels' range, and their step, must be at least {LABEL_VALUES[0]:g}; state "
                "them in a smaller unit."
            )
        steps = 1.0 if step is None else (self.high - self.low) / step
        if steps > _LARGEST_GRID:
            raise InputError(f"The labels must be at most {_LARGEST_GRID} steps apart.")
        if round(steps) < 1 or abs(steps - round(steps)) > _ON_GRID:
            raise InputError("The labels' range must be a whole number of steps.")

    @classmethod
    def parse(cls, text: object) -> "LabelRange":
        """Read ``LO:HI`` or ``LO:HI:STEP``."""
        if not isinstance(text, str):  # From Python.
            kind = type(text).__name__
            raise InputError(f"Labels must be a text, 'LO:HI' or 'LO:HI:STEP'. Got {kind} instead.")
        parts = text.split(":")
        if len(parts) not in (2, 3):
            raise InputError("Labels must be given as LO:HI or LO:HI:STEP (--labels).")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            raise InputError(
                f"Labels must be given as LO:HI:STEP, three numbers (--labels){decimal_point(text)}"
            ) from None
        return cls(*numbers)

    @property
    def width(self) -> float:
        """high − low: the sensitivity of a label."""
        return self.high - self.low

    @property
    def spacing(self) -> float:
        """The step; a range without one has no grid."""
        if self.step is None:
            raise InputError("A discrete mechanism needs the labels' step; give LO:HI:STEP.")
        return self.step

    @property
    def steps(self) -> int:
        """The number of steps between the lowest and the highest label."""
        return round(self.width / self.spacing)

    @cached_property
    def values(self) -> FloatArray:
        """The labels on the grid, float64 of shape (steps + 1,)."""
        return self.at(np.arange(self.steps + 1))

    @cached_property
    def classes(self) -> tuple[Label, ...]:
        """The labels on the grid; integers if all are whole."""
        return plain_numbers(self.values)

    def at(self, positions: npt.NDArray[np.int64]) -> FloatArray:
        """Return low + step · position, float64 of the same shape; positions may be negative."""
        values = np.asarray(self.low + self.spacing * positions, dtype=np.float64)
        # The decimals that the rounding of a sum hides (0.3, not 0.30000000000000004), and the
        # bounds as they are declared.
        most = max(abs(self.low), abs(self.high))
        if 0 <= (places := 14 - math.floor(math.log10(most))) <= 300:
            plain = np.round(values, places)
            values = np.where(np.abs(plain - values) <= 4 * math.ulp(most), plain, values)
        ends = [positions == 0, positions == self.steps]
        return np.select(ends, [self.low, self.high], values)

    def codes(self, labels: npt.ArrayLike) -> IntArray:
        """Return the grid positions of label values, int32 of shape (n,)."""
        positions = (self.check(labels) - self.low) / self.spacing
        off = int(np.count_nonzero(np.abs(positions - np.rint(positions)) > _ON_GRID))
        if off:
            raise InputError(f"The labels must lie on the declared grid; rows off it: {off:,}.")
        return np.rint(positions).astype(np.int32)

    def check(self, labels: npt.ArrayLike) -> FloatArray:
        """Return labels as float64 of shape (n,), all inside the range."""
        try:
            values = np.asarray(labels, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("The labels of a numeric mechanism must be numbers.") from None
        if values.ndim != 1:
            raise InputError("The labels must be a one-dimensional array.")
        inside = (values >= self.low) & (values <= self.high)  # False for a missing one.
        if not inside.all():
            found = f"{int((~inside).sum()):,}"
            raise InputError(f"The labels must lie in the declared range; rows outside: {found}.")
        return values

    def declaration(self) -> dict[str, Any]:
        """Return the parameters ``low``, ``high`` and, where there is one, ``step``."""
        bounds: dict[str, Any] = {"low": self.low, "high": self.high}
        return bounds if self.step is None else bounds | {"step": self.step}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> "LabelRange":
        """Read the declared bounds and step."""
        missing = [key for key in ("low", "high") if parameters.get(key) is None]
        if missing:
            raise InputError(
                f"A mechanism on numeric labels must state {' and '.join(missing)!r}: give "
                "their range, --labels LO:HI[:STEP]."
            )
        return cls(parameters["low"], parameters["high"], parameters.get("step"))


def plain_numbers(values: FloatArray) -> tuple[int | float, ...]:
    """Return the numbers of an array; integers if all are whole, and no larger than 2⁵³."""
    whole = bool(np.all((values == np.rint(values)) & (np.abs(values) <= 2.0**53)))
    return tuple(values.astype(np.int64).tolist() if whole else values.tolist())


def between(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Move edges halfway between two neighbouring values, so that rounding moves no value."""
    places = np.unique(np.clip(np.searchsorted(values, edges), 1, len(values) - 1))
    return np.asarray((values[places - 1] + values[places]) / 2)


def nearest(points: FloatArray, numbers: FloatArray) -> IndexArray:
    """Return the position of the nearest of increasing points, int64 of shape (n,)."""
    middles = (points[1:] + points[:-1]) / 2
    return np.asarray(np.searchsorted(middles, numbers, side="right"), dtype=np.int64)
