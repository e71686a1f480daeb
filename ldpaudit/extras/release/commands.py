"""``ldpaudit privatize``."""

# What a command needs is imported when it is called: the command line itself must start at once.

from typing import Annotated, Final

from ldpaudit.doors import Command, Debug, Option, Outputs
from ldpaudit.extras.release.privatize.request import PrivatizeRequest


def privatize(
    request: PrivatizeRequest,
    quiet: Annotated[bool, Option("Print nothing.")] = False,
    _debug: Debug = False,
) -> None:
    """Apply a mechanism to a table and write the release with its declaration inside."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.release.privatize.work import privatize

    carry_out(privatize, request, Outputs(), quiet=quiet)


PRIVATIZE: Final = Command(privatize)
