"""``ldpaudit policy check|explain|init``."""

from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug
from ldpaudit.options import Argument


def check(
    files: Annotated[tuple[str, ...], Argument("The policy file, or several.")],
    _debug: Debug = False,
) -> None:
    """Validate policies without any data."""
    from ldpaudit.judging.policy import load_policy

    for file in map(Path, files):
        load_policy(file)
        typer.echo(f"{file.name}: a valid policy.")


def explain(
    check: Annotated[str, Argument("The check's id.")],
    _debug: Debug = False,
) -> None:
    """Explain a check: what it compares, and when it fails."""
    from ldpaudit.judging.policy import explain as explained

    typer.echo(explained(check))


def init(
    file: Annotated[Path, Argument("The file to write.")] = Path("ldpaudit.toml"),
    _debug: Debug = False,
) -> None:
    """Write a starter policy, never over a file that exists."""
    from ldpaudit.errors import OutputError
    from ldpaudit.judging.policy import STARTER
    from ldpaudit.writing import write_whole

    if file.exists():
        raise OutputError(f"{file.name} exists already and is left as it is.")
    write_whole(file, STARTER)
    typer.echo(f"Wrote {file.name}.")
