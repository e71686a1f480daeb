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
    from ldpaudit.commands.privatize.text import summary_lines
    from ldpaudit.commands.privatize.work import privatize as apply
    from ldpaudit.terminal import progress_on_terminal, say

    with progress_on_terminal(quiet) as progress:
        summary = apply(request, progress)
    if not quiet:
        for line in summary_lines(summary, request):
            say(line)
