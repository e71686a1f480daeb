"""``ldpaudit run``, ``demo`` and ``report``."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Gate, Json
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.options import Argument, Option

Html = Annotated[Path | None, Option("Where to write the report.")]


def run(
    request: RunRequest,
    gate: Gate,
    html: Html = None,
    json: Json = None,
    quiet: Annotated[bool, Option("Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit a released dataset and write the report."""
    from ldpaudit.commands.outputs import Outputs
    from ldpaudit.commands.run.work import audit_release

    request = replace(request, command=recorded_command(sys.argv, run))
    outputs = Outputs.beside(request.release, "audit", json, html)
    result = audit_release(request, outputs, quiet=quiet)
    raise typer.Exit(gate.status(result.verdict))


def demo(
    folder: Annotated[Path, Option("Where to put the releases and the reports.")] = Path(
        "ldpaudit-demo"
    ),
    seed: Annotated[int, Option("The seed of the releases.")] = 20260101,
    _debug: Debug = False,
) -> None:
    """Audit two releases of an embedded sample: an honest one and one that leaks too much."""
    from ldpaudit.commands.run.work import run_demo

    raise typer.Exit(run_demo(folder, seed))


def report(
    result: Annotated[Path, Argument("A stored result (.json).")],
    html: Html = None,
    _debug: Debug = False,
) -> None:
    """Render a stored result again."""
    from ldpaudit.commands.run.work import render_again

    typer.echo(render_again(result, html))
