"""The options of ``ldpaudit sweep``: its grid of noise, and the points of that."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from ldpaudit.doors import Argument, InputError, Option, refuse
from ldpaudit.errors import decimal_point
from ldpaudit.extras.release.privatize.request import ColumnRequest, DataOptions
from ldpaudit.options import FileOptions, PlanOptions

Parameter = Literal["lambda", "epsilon"]
MOST_VALUES: Final = 1000
_DIGITS: Final = 12


@dataclass(frozen=True)
class Grid:
    """The distinct values of one parameter, the least noise first: λ ascending, ε descending."""

    parameter: Parameter
    values: tuple[float, ...]


def parse_grid(parameter: Parameter, text: str) -> Grid:
    """Read ``V1,V2,…`` or ``LO:HI:N``, N values from LO to HI at equal distances (InputError)."""
    values = sorted(set(_values(parameter, text)))
    refuse(
        parameter == "epsilon" and not all(0 < value < math.inf for value in values),
        f"Every ε of the grid must be above 0 and finite{_decimal(text)}",
    )
    refuse(
        parameter == "lambda" and not all(0 < value <= 1 for value in values),
        "Every λ of the grid must lie above 0 and be at most 1; with λ = 0 every true label "
        f"would be released{_decimal(text)}",
    )
    refuse(
        not 1 <= len(values) <= MOST_VALUES,
        f"The grid --{parameter} must hold 1 to {MOST_VALUES} different values. Got {len(values)}.",
    )
    return Grid(parameter, tuple(values if parameter == "lambda" else values[::-1]))


def _values(parameter: str, text: str) -> list[float]:
    malformed = InputError(
        f"The grid --{parameter} must be numbers V1,V2,… or LO:HI:N, N values from LO to HI"
        f"{decimal_point(text)}"
    )
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",") if part.strip()]
        ends = text.split(":")
        low, high, n = float(ends[0]), float(ends[1]), int(ends[2])
    except (ValueError, IndexError):
        raise malformed from None
    if len(ends) > 3 or not (math.isfinite(low) and math.isfinite(high)) or n < 0:
        raise malformed
    refuse(low > high, f"The grid --{parameter} LO:HI:N must begin with its lowest value.")
    refuse(
        n > MOST_VALUES,
        f"The grid --{parameter} must hold 1 to {MOST_VALUES} different values. Got {n}.",
    )
    # Rounded so that a value is written as a person would write it.
    return [round(low + (high - low) * i / max(n - 1, 1), _DIGITS) for i in range(n)]


def _decimal(text: str) -> str:
    """Return the end of a sentence about a grid that may be one number with a decimal comma."""
    return decimal_point(text) if re.fullmatch(r"\s*-?0,\d+\s*", text) else "."


@dataclass(frozen=True)
class Point:
    """One simulated release: a mechanism, its noise, and which of the draws it is, from 1."""

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


def _full_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the contract, each once, in order."""
    from ldpaudit.mechanisms import full_name

    return tuple(dict.fromkeys(full_name(name) for name in names))


@dataclass(frozen=True)
class GridOptions:
    """The grid of a sweep, as the command line states it."""

    lambda_: Annotated[str | None, Option("The grid of λ: V1,V2,… or LO:HI:N.")] = None
    epsilon: Annotated[str | None, Option("The grid of ε in nats, instead of --lambda.")] = None

    def value(self) -> Grid:
        """Return the grid (InputError if there is none or there are two)."""
        refuse(
            (self.lambda_ is None) == (self.epsilon is None),
            "A sweep must be given one grid: --lambda or --epsilon.",
        )
        if self.lambda_ is None:
            return parse_grid("epsilon", self.epsilon or "")
        return parse_grid("lambda", self.lambda_)


@dataclass(frozen=True, kw_only=True)
class SweepRequest(FileOptions, PlanOptions, DataOptions):
    """The options of ``ldpaudit sweep``.

    Attributes
    ----------
    mechanisms : tuple of str
        Names of the contract.
    public : str or None
        Short for the generator "mixture" with this table as ``generator_data``.
    learner : {"linear", "network"}
        What learns from each release: logistic or ridge regression, or a dense network.
    seed : int or None
        None: 0.
    processes : int or None
        None: as many as processors.
    memory : int, str or None
        GiB for all processes together (three quarters of what is free).
    out : Path or None
        Where every point is kept.
    resume : bool
        Whether ``out`` is continued.
    """

    data: Annotated[
        str, Argument("The table with the true labels: Parquet, CSV, Excel …", file=True)
    ]
    label: Annotated[str, Option("The true label's column.")] = "label"
    mechanisms: Annotated[
        Sequence[str],
        Option(
            "A mechanism, such as rr or double-rr (repeatable).", "--mechanism", read=_full_names
        ),
    ]
    grid: Annotated[Grid, GridOptions]
    repeats: Annotated[int, Option("Draws of every setting.")] = 1
    test: Annotated[str | None, Option("Rows with true labels to test learners on.", file=True)] = (
        None
    )
    test_share: Annotated[float, Option("Without --test, the share of the data held out.")] = 0.2
    public: Annotated[
        str | None,
        Option("A public labelled table: synthetic rows are those of a mixture of it.", file=True),
    ] = None
    learner: Annotated[Literal["linear", "network"], Option("What learns from each release.")] = (
        "linear"
    )
    seed: Annotated[int | None, Option("The seed (default: 0).")] = None
    processes: Annotated[int | None, Option("Processes at most (default: processors).")] = None
    threads: Annotated[int | None, Option("Threads of each (default: 1).")] = None
    memory: Annotated[
        int | str | None,
        Option("Memory for all processes, such as 4GiB (default: ¾ of what is free).", type=str),
    ] = None
    out: Annotated[Path | None, Option("The folder that keeps every draw.")] = None
    resume: Annotated[bool, Option("Go on with the sweep in --out.")] = False

    def with_generator(self) -> "SweepRequest":
        """Return the request with the generator that ``public`` stands for (InputError)."""
        if self.public is None:
            return self
        refuse(
            self.synthetic is not None or self.generator_data is not None,
            "--public does not go with --synthetic or --generator-data.",
        )
        generator = self.generator or "mixture"
        return replace(self, public=None, generator=generator, generator_data=self.public)

    @property
    def numeric(self) -> bool:
        """Whether labels are numbers: learners are then regressors."""
        from ldpaudit.mechanisms import traits_of

        return traits_of(self.mechanisms[0]).numeric

    def points(self) -> list[Point]:
        """Return every release, draw by draw so that an unfinished sweep covers the whole grid."""
        return [
            Point(name, self.grid.parameter, value, repeat)
            for repeat in range(1, self.repeats + 1)
            for value in self.grid.values
            for name in self.mechanisms
        ]

    def first_points(self) -> list[Point]:
        """Return the first draw of every setting."""
        return replace(self, repeats=1).points()

    def draws(self, mechanism: str, value: float) -> list[Point]:
        """Return the draws of one setting."""
        return replace(
            self, mechanisms=(mechanism,), grid=Grid(self.grid.parameter, (value,))
        ).points()

    def privatized(self, point: Point, seed: int) -> ColumnRequest:
        """Return what ``ldpaudit privatize`` would be asked for at a point, as a simulation."""
        from ldpaudit.extras.release.privatize.plan import options_of

        takes = ("data", "label", "drop", *options_of(point.mechanism))
        shared = [field.name for field in fields(DataOptions) if field.name in takes]
        options: dict[str, Any] = {name: getattr(self, name) for name in shared}
        options |= vars(self.files)
        options["noise" if point.parameter == "lambda" else "epsilon"] = point.value
        return ColumnRequest(
            output=Path("never-written"),
            mechanism=point.mechanism,
            device=self.device,
            experimental=True,
            seed=seed,
            **options,
        )
