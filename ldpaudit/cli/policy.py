"""``ldpaudit policy check|explain|show|init``."""

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

    for file in files:
        policy = load_policy(file)
        asked = [*policy.checks.asked(), *(["min-rows"] if policy.audit.min_rows else [])]
        weak = "" if policy.checks.can_fail() else " None of its checks can fail."
        typer.echo(f"{Path(file).name}: a valid policy. It asks for {', '.join(asked)}.{weak}")


def explain(
    name: Annotated[
        str | None, Argument("A check, a key, a preset or a rule (default: all of them).")
    ] = None,
    _debug: Debug = False,
) -> None:
    """Explain a check, a key or a rule of policies; without a name all of them."""
    from ldpaudit.judging.policy import explain as explained

    typer.echo(explained(name))


def show(
    preset: Annotated[str, Argument("ldpaudit:default, ldpaudit:strict or ldpaudit:research.")],
    _debug: Debug = False,
) -> None:
    """Print a preset, the policies that come with ldpaudit."""
    from ldpaudit.judging.policy import preset_text

    typer.echo(preset_text(preset), nl=False)


def init(
    file: Annotated[Path, Argument("The file to write.")] = Path("ldpaudit.toml"),
    _debug: Debug = False,
) -> None:
    """Write a starter policy, never over a file that exists."""
    from ldpaudit.errors import OutputError
    from ldpaudit.judging.policy import STARTER
    from ldpaudit.work.files import write_all

    if file.exists():
        raise OutputError(f"{file.name} exists already and is left as it is.")
    write_all({file: STARTER}, last=True)
    typer.echo(f"Wrote {file.name}.")
