"""What ``ldpaudit sweep`` was asked for, and everything that can be checked before reading data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ldpaudit.commands.privatize.request import (
    PrivatizeRequest,
    check_request,
    option_name,
    options_of,
)
from ldpaudit.commands.sweep.grid import Grid, Point, all_points
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import full_name, traits_of
from ldpaudit.mechanisms.registry import applicable


@dataclass(frozen=True)
class SweepRequest:
    """The options of ``ldpaudit sweep``.

    Attributes
    ----------
    data : str
        The table with the true labels.
    label : str
        Its column.
    mechanisms : tuple of str
        Names of the contract.
    grid : Grid
    labels, prior, synthetic, generator, generator_data, drop
        As for ``ldpaudit privatize``.
    test : str or None
        A table of rows that are not released, on which learners are tested.
    test_share : float
        Without it, the share of the data that is held out.
    learner : {"linear", "network"}
        What learns from each release: logistic or ridge regression, or a dense network.
    policy : Path or None
    only, skip : tuples of audit ids
    budget : float or None
        Seconds for the attacks of each point.
    repeats : int
        Draws of every point.
    seed : int or None
        None: derived from the data.
    threads, processes : int or None
        Threads of each process (1), and processes at most (as many as processors).
    memory : float or None
        GiB for all processes together (three quarters of what is free).
    device : {"auto", "cpu", "cuda"}
    out : Path or None
        Where every point is kept.
    resume : bool
        Whether ``out`` is continued.
    """

    data: str
    label: str
    mechanisms: tuple[str, ...]
    grid: Grid
    labels: str | None = None
    prior: Path | None = None
    synthetic: str | None = None
    generator: str | None = None
    generator_data: str | None = None
    drop: tuple[str, ...] = ()
    test: str | None = None
    test_share: float = 0.2
    learner: Literal["linear", "network"] = "linear"
    policy: Path | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    budget: float | None = None
    repeats: int = 1
    seed: int | None = None
    threads: int | None = None
    processes: int | None = None
    memory: float | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    out: Path | None = None
    resume: bool = False

    @property
    def numeric(self) -> bool:
        """Whether labels are numbers: learners are then regressors."""
        return traits_of(self.mechanisms[0]).numeric

    def points(self) -> list[Point]:
        """Return every simulated release."""
        return all_points(self.mechanisms, self.grid, self.repeats)

    def privatized(self, point: Point, seed: int) -> PrivatizeRequest:
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

    def paths(self) -> tuple[Path | str | None, ...]:
        """Return every file that is read, so that none of them is written to."""
        own = (self.data, self.prior, self.synthetic, self.generator_data, self.test, self.policy)
        return tuple(path for path in own if path is not None)


def full_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the contract, each once, in order."""
    return tuple(dict.fromkeys(full_name(name) for name in names))


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
            raise InputError(f"{option_name(field)} does not belong to any of the mechanisms.")
    given = request.synthetic is not None or request.generator is not None
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
    for name in ("repeats", "threads", "processes"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} must be at least 1. Got {value} instead.")
    if request.seed is not None and request.seed < 0:
        raise InputError("--seed must not be negative.")
    for name in ("memory", "budget"):
        value = getattr(request, name)
        if value is not None and not value >= 0:
            raise InputError(f"--{name} must not be negative. Got {value:g} instead.")
    if request.memory == 0:
        raise InputError("--memory must be above 0 GiB.")
