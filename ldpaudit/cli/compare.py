"""``ldpaudit compare``: releases of the same data side by side."""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Gate
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.commands.outputs import Outputs
from ldpaudit.options import Option


def compare(
    request: CompareRequest,
    gate: Gate,
    outputs: Outputs,
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Compare releases of the same data: leakage, attacks, and what can still be learnt."""
    from ldpaudit.api.planning import policy_of
    from ldpaudit.commands.compare.text import print_summary
    from ldpaudit.commands.compare.work import compare as work
    from ldpaudit.commands.shell import carry_out
    from ldpaudit.reports.pages.comparison import render_comparison
    from ldpaudit.result.comparison import Comparison

    request = replace(request, command=recorded_command(sys.argv, compare))
    request.check()
    outputs = outputs.or_beside(request.inputs[0], "comparison")
    comparison = carry_out(
        *(work, request, outputs, print_summary),
        stored=Comparison.model_dump,
        html=render_comparison,
        quiet=quiet,
    )
    if request.policy is not None:
        raise typer.Exit(gate.status(policy_of(request), *comparison.releases))
