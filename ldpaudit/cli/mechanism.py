"""``ldpaudit mechanism describe|design|compose|channel|audit``: analysis without a release."""

from typing import Annotated

import typer

from ldpaudit.cli.options import EXIT, Debug, Json
from ldpaudit.commands.black_box.request import Request
from ldpaudit.commands.mechanism.request import (
    ChannelRequest,
    ComposeRequest,
    DescribeRequest,
    DesignRequest,
)
from ldpaudit.options import Option


def describe(request: DescribeRequest, _debug: Debug = False) -> None:
    """Say everything that is exactly known of a mechanism: ε, λ, δ(ε), Rényi curve, error."""
    from ldpaudit.commands.mechanism.describe import describe

    describe(request)


def channel(request: ChannelRequest, _debug: Debug = False) -> None:
    """Analyse a channel matrix exactly."""
    from ldpaudit.commands.mechanism.describe import describe_channel

    describe_channel(request)


def design(request: DesignRequest, _debug: Debug = False) -> None:
    """Compare all mechanisms for a prior, a loss and ε, and say which to take."""
    from ldpaudit.commands.mechanism.design import design

    design(request)


def compose(request: ComposeRequest, _debug: Debug = False) -> None:
    """Say what several releases of the same labels give away together."""
    from ldpaudit.commands.mechanism.compose import compose_releases

    compose_releases(request)


def audit(
    request: Request,
    json: Json = None,
    quiet: Annotated[bool, Option("Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit any randomizer by its outputs: a certified lower bound of its ε."""
    from ldpaudit.commands.black_box.command import run_and_write

    raise typer.Exit(EXIT[run_and_write(request, json, quiet=quiet).verdict])
