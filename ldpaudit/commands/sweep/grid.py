"""Grids of λ or ε, and the points of a sweep."""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ldpaudit.errors import InputError

Parameter = Literal["lambda", "epsilon"]
MOST_VALUES: Final = 1000
_DIGITS: Final = 12


@dataclass(frozen=True)
class Grid:
    """The values of one parameter.

    Parameters
    ----------
    parameter : {"lambda", "epsilon"}
    values : tuple of float
        Distinct, the least noise first: λ ascending, ε (in nats) descending.
    """

    parameter: Parameter
    values: tuple[float, ...]


def parse_grid(parameter: Parameter, text: str) -> Grid:
    """Read ``V1,V2,…`` or ``LO:HI:N``, N values from LO to HI at equal distances.

    Raises
    ------
    InputError
        If it is neither, holds no value or too many, or a value is none of the parameter.
    """
    values = sorted({_checked(parameter, value) for value in _values(parameter, text)})
    if not 1 <= len(values) <= MOST_VALUES:
        raise InputError(
            f"The grid --{parameter} must hold 1 to {MOST_VALUES} different values. "
            f"Got {len(values)}."
        )
    return Grid(parameter, tuple(values if parameter == "lambda" else values[::-1]))


def _values(parameter: str, text: str) -> list[float]:
    malformed = InputError(
        f"The grid --{parameter} must be numbers V1,V2,… or LO:HI:N, N values from LO to HI."
    )
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",") if part.strip()]
        low, high, count = text.split(":")
        ends, n = (float(low), float(high)), int(count)
    except ValueError:
        raise malformed from None
    if not all(map(math.isfinite, ends)) or not 0 <= n <= MOST_VALUES or ends[0] > ends[1]:
        raise malformed
    # Rounded so that a value is written as a person would write it.
    return [round(value, _DIGITS) for value in np.linspace(*ends, n).tolist()]


def _checked(parameter: str, value: float) -> float:
    if parameter == "epsilon" and not 0 < value < math.inf:
        raise InputError("Every ε of the grid must be above 0 and finite.")
    if parameter == "lambda" and not 0 < value <= 1:
        raise InputError(
            "Every λ of the grid must lie above 0 and be at most 1; with λ = 0 every true label "
            "would be released."
        )
    return value


@dataclass(frozen=True)
class Point:
    """One simulated release: a mechanism, its parameter, and which of the repeated draws it is.

    Attributes
    ----------
    mechanism : str
        Its name in the contract.
    parameter : {"lambda", "epsilon"}
    value : float
    repeat : int
        From 1.
    """

    mechanism: str
    parameter: Parameter
    value: float
    repeat: int

    @property
    def key(self) -> str:
        """The name of its file and the key of its randomness: the same in every sweep."""
        return f"{self.mechanism}-{self.parameter}-{self.value!r}-{self.repeat}"

    @property
    def words(self) -> str:
        """The point in words."""
        symbol = "λ" if self.parameter == "lambda" else "ε"
        return f"{self.mechanism} {symbol} = {self.value:g}, draw {self.repeat}"


def all_points(mechanisms: tuple[str, ...], grid: Grid, repeats: int) -> list[Point]:
    """Return every point, repeat by repeat so that an unfinished sweep covers the whole grid."""
    return [
        Point(name, grid.parameter, value, repeat)
        for repeat in range(1, repeats + 1)
        for value in grid.values
        for name in mechanisms
    ]
