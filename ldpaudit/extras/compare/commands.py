"""``ldpaudit compare``."""

# What a command needs is imported when it is called: the command line itself must start at once.

import sys
from dataclasses import replace
from typing import Annotated, Any, Final

import typer

from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.interface import Gate, Whom
from ldpaudit.doors import Command, Debug, Option, Outputs
from ldpaudit.extras.compare.request import CompareRequest


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
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.compare.sentences import Compared
    from ldpaudit.extras.compare.work import compare as work

    request = replace(request, command=recorded_command(sys.argv, compare))
    request.check()
    outputs = outputs.or_beside(str(request.inputs[0]), "comparison")
    found = carry_out(
        lambda request, progress: Compared(work(request, progress), profile),
        *(request, outputs),
        quiet=quiet,
        discreet=profile == "public",
    )
    if request.policy is not None:
        raise typer.Exit(gate.status(policy_of(request), *found.comparison.releases))


def _stored() -> Any:
    from ldpaudit.extras.compare.comparison import Comparison

    return Comparison


# That of results, whose import would take longer than the command line.
COMPARE: Final = Command(compare, stored=_stored, schema_version="1.5")
