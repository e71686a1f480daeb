"""What ``ldpaudit sweep`` was asked for, and everything that can be checked before reading data."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ldpaudit.commands.privatize.request import PrivatizeRequest, check_request, options_of
from ldpaudit.errors import InputError
from ldpaudit.options import Argument, Option, PlanOptions, option_name

if TYPE_CHECKING:
    from ldpaudit.commands.sweep.grid import Grid, Point


def _full_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the contract, each once, in order."""
    from ldpaudit.mechanisms import full_name

    return tuple(dict.fromkeys(full_name(name) for name in names))


@dataclass(frozen=True)
class GridOptions:
    """The grid of a sweep, as the command line states it."""

    lambda_: Annotated[str | None, Option("The grid of λ: V1,V2,… or LO:HI:N.")] = None
    epsilon: Annotated[str | None, Option("The grid of ε in nats, instead of --lambda.")] = None

    def value(self) -> "Grid":
        """Return the grid.

        Raises
        ------
        InputError
            If there is none or there are two.
        """
        from ldpaudit.commands.sweep.grid import parse_grid

        if (self.lambda_ is None) == (self.epsilon is None):
            raise InputError("A sweep must be given one grid: --lambda or --epsilon.")
        if self.lambda_ is None:
            return parse_grid("epsilon", self.epsilon or "")
        return parse_grid("lambda", self.lambda_)


@dataclass(frozen=True, kw_only=True)
class SweepRequest(PlanOptions):
    """The options of ``ldpaudit sweep``.

    Attributes
    ----------
    mechanisms : tuple of str
        Names of the contract.
    labels, prior, synthetic, generator, generator_data, drop
        As for ``ldpaudit privatize``.
    learner : {"linear", "network"}
        What learns from each release: logistic or ridge regression, or a dense network.
    seed : int or None
        None: derived from the data.
    processes : int or None
        None: as many as processors.
    memory : float or None
        GiB for all processes together (three quarters of what is free).
    out : Path or None
        Where every point is kept.
    resume : bool
        Whether ``out`` is continued.
    """

    data: Annotated[str, Argument("The table with the true labels: Parquet or CSV.", file=True)]
    mechanisms: Annotated[
        tuple[str, ...],
        Option(
            "A mechanism, such as rr or double-rr (repeatable).", "--mechanism", read=_full_names
        ),
    ]
    label: Annotated[str, Option("The true label's column.")] = "label"
    grid: Annotated["Grid", GridOptions]
    repeats: Annotated[int, Option("Draws of every setting.")] = 1
    labels: Annotated[str | None, Option("The range of numeric labels, LO:HI or LO:HI:STEP.")] = (
        None
    )
    prior: Annotated[Path | None, Option("A public prior: CSV label,probability.", file=True)] = (
        None
    )
    drop: Annotated[tuple[str, ...], Option("A column that is not released (repeatable).")] = ()
    synthetic: Annotated[str | None, Option("Synthetic rows with a label column.", file=True)] = (
        None
    )
    generator: Annotated[
        Literal["gan", "mixture"] | None, Option("What makes synthetic rows instead.")
    ] = None
    generator_data: Annotated[
        str | None,
        Option("A public labelled table to train it on (default: the private rows).", file=True),
    ] = None
    test: Annotated[str | None, Option("Rows with true labels to test learners on.", file=True)] = (
        None
    )
    test_share: Annotated[float, Option("Without --test, the share of the data held out.")] = 0.2
    learner: Annotated[Literal["linear", "network"], Option("What learns from each release.")] = (
        "linear"
    )
    seed: Annotated[int | None, Option("The seed (default: derived from the data).")] = None
    processes: Annotated[int | None, Option("Processes at most (default: processors).")] = None
    threads: Annotated[int | None, Option("Threads of each (default: 1).")] = None
    memory: Annotated[
        float | None, Option("GiB for all processes (default: ¾ of what is free).")
    ] = None
    out: Annotated[Path | None, Option("The folder that keeps every draw.")] = None
    resume: Annotated[bool, Option("Go on with the sweep in --out.")] = False

    @property
    def numeric(self) -> bool:
        """Whether labels are numbers: learners are then regressors."""
        from ldpaudit.mechanisms import traits_of

        return traits_of(self.mechanisms[0]).numeric

    def points(self) -> "list[Point]":
        """Return every simulated release."""
        from ldpaudit.commands.sweep.grid import all_points

        return all_points(self.mechanisms, self.grid, self.repeats)

    def privatized(self, point: "Point", seed: int) -> PrivatizeRequest:
        """Return what ``ldpaudit privatize`` would be asked for at a point, as a simulation."""
        takes = options_of(point.mechanism)
        shared = ("labels", "prior", "synthetic", "generator", "generator_data")
        options: dict[str, Any] = {n: getattr(self, n) for n in shared if n in takes}
        options["noise" if point.parameter == "lambda" else "epsilon"] = point.value
        return PrivatizeRequest(
            data=self.data,
            output=Path("never-written"),
            mechanism=point.mechanism,
            label=self.label,
            drop=self.drop,
            device=self.device,
            experimental=True,
            seed=seed,
            **options,
        )


def check_sweep(request: SweepRequest) -> None:
    """Check everything that can be told from the options alone.

    Raises
    ------
    InputError
        If a mechanism cannot be swept, an option belongs to none of them, is missing, or is out of
        range.
    """
    _check_mechanisms(request)
    _check_options(request)
    _check_numbers(request)
    for point in request.points():
        if point.repeat == 1:
            check_request(request.privatized(point, 0))


def _check_mechanisms(request: SweepRequest) -> None:
    from ldpaudit.mechanisms.registry import applicable, traits_of

    if not request.mechanisms:
        raise InputError("A sweep must be given at least one mechanism: --mechanism NAME.")
    able = ", ".join(name for name in applicable() if traits_of(name).swept)
    for name in request.mechanisms:
        if name not in applicable():
            raise InputError(f"The mechanism {name!r} is not known; choose from {able}.")
        if not traits_of(name).swept:
            raise InputError(
                f"The mechanism {name!r} needs options of its own and cannot be swept; choose from "
                f"{able}."
            )
        if request.grid.parameter not in traits_of(name).stated_by:
            raise InputError(f"The mechanism {name!r} is swept by --epsilon.")
    numeric = {traits_of(name).numeric for name in request.mechanisms}
    if len(numeric) > 1:
        raise InputError(
            "Mechanisms on numbers and mechanisms on classes are judged by different attacks: "
            "sweep them apart (on numbers, debiased-rr is randomized response)."
        )


def _check_options(request: SweepRequest) -> None:
    for field in ("labels", "prior", "synthetic", "generator"):
        if getattr(request, field) is not None and not any(
            field in options_of(name) for name in request.mechanisms
        ):
            raise InputError(
                f"{option_name(request, field)} does not belong to any of the mechanisms."
            )
    given = request.synthetic is not None or request.generator is not None
    from ldpaudit.mechanisms import traits_of

    hungry = [n for n in request.mechanisms if "synthetic rows" in traits_of(n).needs]
    if hungry and not given:
        raise InputError(
            f"The mechanism {hungry[0]!r} must be given synthetic rows: --synthetic FILE or "
            f"--generator NAME."
        )
    if request.generator_data is not None and request.generator is None:
        raise InputError("--generator-data must come with --generator, which is trained on it.")
    if request.resume and request.out is None:
        raise InputError("--resume must come with --out, the folder of the sweep to go on with.")


def _check_numbers(request: SweepRequest) -> None:
    if not 0 < request.test_share < 1:
        raise InputError(f"--test-share must lie in (0, 1). Got {request.test_share:g} instead.")
    request.check()
    for name in ("repeats", "processes"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} must be at least 1. Got {value} instead.")
    if request.seed is not None and request.seed < 0:
        raise InputError("--seed must not be negative.")
    if request.memory is not None and not request.memory > 0:
        raise InputError(f"--memory must be above 0 GiB. Got {request.memory:g} instead.")
