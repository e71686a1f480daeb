"""``ldpaudit privatize``."""

from typing import Annotated

from ldpaudit.cli.options import Debug
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.options import Option


def privatize(
    request: PrivatizeRequest,
    quiet: Annotated[bool, Option("Print nothing.")] = False,
    _debug: Debug = False,
) -> None:
    """Apply a mechanism to a table and write the release with its declaration inside."""
    from ldpaudit.commands.outputs import Outputs
    from ldpaudit.commands.privatize.result import print_summary
    from ldpaudit.commands.privatize.work import privatize
    from ldpaudit.commands.shell import carry_out

    carry_out(privatize, request, Outputs(), print_summary, quiet=quiet)
