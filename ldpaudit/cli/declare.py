"""``ldpaudit declare``."""

from typing import Annotated

from ldpaudit.cli.options import Debug
from ldpaudit.commands.declare.request import DeclareRequest
from ldpaudit.options import Option


def declare(
    request: DeclareRequest,
    quiet: Annotated[bool, Option("Print nothing.")] = False,
    _debug: Debug = False,
) -> None:
    """Show what a released file declares, or write a declaration into it or next to it."""
    from ldpaudit.commands.declare.work import declare_file, print_declared
    from ldpaudit.commands.outputs import Outputs
    from ldpaudit.commands.shell import carry_out

    carry_out(declare_file, request, Outputs(), print_declared, quiet=quiet)
