"""``ldpaudit compare``: releases of the same data side by side."""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Gate, Html, Json
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.options import Option


def compare(
    request: CompareRequest,
    gate: Gate,
    html: Html = None,
    json: Json = None,
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Hold releases of the same data side by side: leakage, attacks, what can be learnt."""
    from ldpaudit.commands.compare.command import compare_releases, worst_verdict
    from ldpaudit.commands.outputs import Outputs

    request = replace(request, command=recorded_command(sys.argv, compare))
    outputs = Outputs.beside(request.inputs[0], "comparison", json, html)
    comparison = compare_releases(request, outputs, quiet=quiet)
    if request.policy is not None:
        raise typer.Exit(gate.status(worst_verdict(comparison)))
