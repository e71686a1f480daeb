"""The options of ``ldpaudit sweep``."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ldpaudit.commands.privatize.request import ColumnRequest, DataOptions
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions, Option, PlanOptions

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

    label: Annotated[str, Option("The true label's column.")] = "label"
    mechanisms: Annotated[
        tuple[str, ...],
        Option(
            "A mechanism, such as rr or double-rr (repeatable).", "--mechanism", read=_full_names
        ),
    ]
    grid: Annotated["Grid", GridOptions]
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
        """Return the request with the generator that ``public`` stands for.

        Raises
        ------
        InputError
            If synthetic rows are to come from somewhere else, too.
        """
        if self.public is None:
            return self
        if self.synthetic is not None or self.generator_data is not None:
            raise InputError("--public does not go with --synthetic or --generator-data.")
        generator = self.generator or "mixture"
        return replace(self, public=None, generator=generator, generator_data=self.public)

    @property
    def numeric(self) -> bool:
        """Whether labels are numbers: learners are then regressors."""
        from ldpaudit.mechanisms import traits_of

        return traits_of(self.mechanisms[0]).numeric

    def points(self) -> "list[Point]":
        """Return every simulated release."""
        from ldpaudit.commands.sweep.grid import all_points

        return all_points(self.mechanisms, self.grid, self.repeats)

    def privatized(self, point: "Point", seed: int) -> ColumnRequest:
        """Return what ``ldpaudit privatize`` would be asked for at a point, as a simulation."""
        from ldpaudit.commands.privatize.plan import options_of

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
