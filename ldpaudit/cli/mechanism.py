"""``ldpaudit mechanism describe|design|compose|channel|audit``: analysis without a release."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldpaudit.cli.options import EXIT, Debug
from ldpaudit.commands.black_box.request import BlackBoxRequest
from ldpaudit.commands.mechanism.request import (
    ChannelRequest,
    ComposeRequest,
    DescribeRequest,
    DesignRequest,
)
from ldpaudit.commands.outputs import Outputs
from ldpaudit.options import Option

if TYPE_CHECKING:
    from ldpaudit.commands.mechanism.analysis import Analysis


def describe(request: DescribeRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Say everything that is exactly known of a mechanism: ε, λ, δ(ε), Rényi curve, error."""
    from ldpaudit.commands.mechanism.analysis import describe

    _analyse(describe, request, outputs)


def channel(request: ChannelRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Analyse a channel matrix exactly."""
    from ldpaudit.commands.mechanism.analysis import describe_channel

    _analyse(describe_channel, request, outputs)


def compose(request: ComposeRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Say what several releases of the same labels reveal together."""
    from ldpaudit.commands.mechanism.composing import compose_releases

    _analyse(compose_releases, request, outputs)


def _analyse(work: "Callable[[Any, Any], Analysis]", request: Any, outputs: Outputs) -> None:
    from ldpaudit.commands.mechanism.analysis import Analysis, print_analysis
    from ldpaudit.commands.mechanism.pages import mechanism_page
    from ldpaudit.commands.shell import carry_out

    text, stored = print_analysis, Analysis.stored
    carry_out(work, request, outputs, text, stored=stored, html=mechanism_page)


def design(
    request: DesignRequest,
    outputs: Outputs,
    quiet: Annotated[bool, Option("Show no progress.")] = False,
    _debug: Debug = False,
) -> None:
    """Compare all mechanisms for a prior, a loss and ε, and say which to take."""
    from ldpaudit.commands.mechanism.designing import Design, design, print_design
    from ldpaudit.commands.mechanism.pages import design_page
    from ldpaudit.commands.shell import carry_out

    text, stored = print_design, Design.model_dump
    carry_out(design, request, outputs, text, stored=stored, html=design_page, quiet=quiet)


def audit(
    request: BlackBoxRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit any randomizer by its outputs: a certified lower bound of its ε."""
    from ldpaudit.commands.black_box.result import BlackBoxAudit, print_summary
    from ldpaudit.commands.black_box.work import audit_black_box
    from ldpaudit.commands.shell import carry_out

    text, stored = print_summary, BlackBoxAudit.model_dump
    outputs = Outputs(json)
    outcome = carry_out(audit_black_box, request, outputs, text, stored=stored, quiet=quiet)
    raise typer.Exit(EXIT[outcome.verdict])
