"""What the commands share: options with an environment twin, choices, exit statuses."""

from enum import StrEnum
from typing import Annotated, Any

import typer

EXIT = {"pass": 0, "fail": 1, "inconclusive": 3}


class Inconclusive(StrEnum):
    """How an inconclusive audit exits."""

    fail = "fail"
    passed = "pass"


class Metric(StrEnum):
    """The space in which neighbours are near."""

    l2 = "l2"
    raw = "raw"
    learned = "learned"


class Device(StrEnum):
    """Where torch models run."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Generator(StrEnum):
    """What makes synthetic features."""

    gan = "gan"
    mixture = "mixture"


def option(*names: str, help: str, panel: str | None = None, hidden: bool = False) -> Any:
    """Return an option with its LDPAUDIT_… environment twin."""
    long = names[0].split("/")[0]
    twin = "LDPAUDIT_" + long.removeprefix("--").replace("-", "_").upper()
    return typer.Option(
        *names, help=help, envvar=twin, show_envvar=False, rich_help_panel=panel, hidden=hidden
    )


def status(verdict: str, inconclusive: Inconclusive | None, exit_zero: bool) -> int:
    """Return the exit status of a verdict."""
    if verdict == "inconclusive" and inconclusive is not None:
        verdict = inconclusive.value
    return 0 if exit_zero else EXIT[verdict]


# Options that several commands have, in the same words.
Debug = Annotated[bool, option("--debug", help="Show tracebacks.")]
Label = Annotated[
    str | None,
    option("--label", help="The released label's column (default: as declared, or 'label')."),
]
TruthFile = Annotated[
    str | None, option("--truth", help="A file with the true labels, in the same row order.")
]
Original = Annotated[
    str | None,
    option("--original", help="A file with the original features, in the same row order."),
]
IdColumn = Annotated[
    str | None, option("--id", help="The column on which --truth and --original are joined.")
]
Drop = Annotated[
    list[str] | None, option("--drop", help="A column that is no feature (repeatable).")
]
Features = Annotated[
    list[str] | None,
    option("--features", help="A column that is a feature (repeatable; default: the rest)."),
]
Queries = Annotated[
    str | None, option("--queries", help="Rows that look for neighbours: a number or 'all'.")
]
Neighbors = Annotated[
    int | None, option("--neighbors", help="How many neighbours (default: adapts to n).")
]
Only = Annotated[list[str] | None, option("--only", help="Run this audit only (repeatable).")]
Skip = Annotated[list[str] | None, option("--skip", help="Leave this audit out (repeatable).")]
SliceColumns = Annotated[
    list[str] | None,
    option("--slice", help="Score the best attack for each value of a column (repeatable)."),
]
PublicPosterior = Annotated[
    str | None, option("--public-posterior", help="P̂(label | features) of model-based-rr: a table.")
]
PublicRows = Annotated[
    str | None, option("--public", help="Public rows with labels: what is known anyway.")
]
Canaries = Annotated[
    str | None,
    option("--canaries", help="The probabilities that some rows' true labels were drawn with."),
]
Threads = Annotated[
    int | None, option("--threads", help="Processors to use (default: all there are).")
]
DeviceChoice = Annotated[Device, option("--device", help="Where torch models run.")]
ExitZero = Annotated[
    bool, option("--exit-zero", help="Exit 0 whatever is found, unless it could not run.")
]
