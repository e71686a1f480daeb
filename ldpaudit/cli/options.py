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


Debug = Annotated[bool, option("--debug", help="Show tracebacks.")]
