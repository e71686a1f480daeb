"""``ldpaudit run``, ``demo`` and ``report``."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Gate, Whom
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.outputs import ReportOutputs
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.options import Argument, Option


def run(
    request: RunRequest,
    gate: Gate,
    outputs: ReportOutputs,
    profile: Whom = "internal",
    details: Annotated[
        bool, Option("In a job of GitHub or GitLab, whose log others may read, show the checks.")
    ] = False,
    quiet: Annotated[bool, Option("Print decision, verdict and first step only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit a released dataset and write the report."""
    from ldpaudit.api import policy_of
    from ldpaudit.commands.run.work import run_and_write

    status = partial(gate.status, policy_of(request))
    request = replace(request, command=recorded_command(sys.argv, run))
    several = len(request.release) > 1
    outputs = outputs.or_beside(request.release[-1], "releases" if several else "audit")
    result = run_and_write(
        *(request, outputs), quiet=quiet, status=status, profile=profile, details=details
    )
    raise typer.Exit(status(result))


def demo(
    folder: Annotated[Path, Option("Where to put the releases and the reports.")] = Path(
        "ldpaudit-demo"
    ),
    seed: Annotated[int, Option("The seed of the releases.")] = 20260101,
    _debug: Debug = False,
) -> None:
    """Audit two releases of an embedded sample: an honest one and one that leaks too much."""
    from ldpaudit.commands.run.demo import run_demo

    raise typer.Exit(run_demo(folder, seed))


def report(
    result: Annotated[
        Path | None, Argument("A stored result (.json); with --schema the name of a command.")
    ] = None,
    *,
    outputs: ReportOutputs,
    policy: Annotated[
        Path | None, Option("The policy it was judged by: checks are placed at their lines.")
    ] = None,
    schema: Annotated[
        bool, Option("Print the JSON Schema of results: of run, or of the command that is named.")
    ] = False,
    profile: Whom = "internal",
    _debug: Debug = False,
) -> None:
    """Render a stored result again: without options, as a page next to it."""
    from ldpaudit.commands.run.work import render_again
    from ldpaudit.commands.schemas import schema_of
    from ldpaudit.errors import InputError

    if schema:
        typer.echo(schema_of(str(result or "run")), nl=False)
        return
    if result is None:
        raise InputError("Name a stored result (.json); ldpaudit run writes one.")
    render_again(result, outputs, policy, profile)
