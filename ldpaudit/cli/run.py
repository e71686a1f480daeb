"""``ldpaudit run``, ``demo`` and ``report``."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Gate
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.outputs import ReportOutputs
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.options import Argument, Option


def run(
    request: RunRequest,
    gate: Gate,
    outputs: ReportOutputs,
    quiet: Annotated[bool, Option("Print decision, verdict and first step only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit a released dataset and write the report."""
    from ldpaudit.commands.run.work import run_and_write

    request = replace(request, command=recorded_command(sys.argv, run))
    outputs = outputs.or_beside(request.release, "audit")
    result = run_and_write(request, outputs, quiet=quiet, status=gate.status)
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
    outputs: ReportOutputs,
    policy: Annotated[
        Path | None, Option("The policy it was judged by: checks are placed at their lines.")
    ] = None,
    _debug: Debug = False,
) -> None:
    """Render a stored result again: without options, as a page beside it."""
    from ldpaudit.commands.run.work import render_again

    render_again(result, outputs, policy)
