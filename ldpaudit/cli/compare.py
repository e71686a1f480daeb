"""``ldpaudit compare``: releases of the same data side by side."""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Gate, Whom
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.commands.outputs import Outputs
from ldpaudit.options import Option


def compare(
    request: CompareRequest,
    gate: Gate,
    outputs: Outputs,
    profile: Whom = "internal",
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Compare releases of the same data: leakage, attacks, and what can still be learnt."""
    from ldpaudit.api import policy_of
    from ldpaudit.commands.compare.sentences import print_summary
    from ldpaudit.commands.compare.work import compare as work
    from ldpaudit.commands.shell import carry_out, say_public
    from ldpaudit.reports.pages.comparison import render_comparison
    from ldpaudit.reports.public_forms import render_public
    from ldpaudit.result.comparison import Comparison
    from ldpaudit.result.public import public_comparison

    request = replace(request, command=recorded_command(sys.argv, compare))
    request.check()
    outputs = outputs.or_beside(request.inputs[0], "comparison")
    if profile == "public":
        comparison = carry_out(
            *(work, request, outputs, lambda c, **how: say_public(public_comparison(c), **how)),
            stored=lambda found: public_comparison(found).model_dump(),
            html=lambda found: render_public(public_comparison(found), "html"),
            quiet=quiet,
            discreet=True,
        )
    else:
        comparison = carry_out(
            *(work, request, outputs, print_summary),
            stored=Comparison.model_dump,
            html=render_comparison,
            confidential=lambda found: found.confidential,
            quiet=quiet,
        )
    if request.policy is not None:
        raise typer.Exit(gate.status(policy_of(request), *comparison.releases))
