"""``ldpaudit verify``."""

# What a command needs is imported when it is called: the command line itself must start at once.

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ldpaudit.doors import EXIT, Command, Debug, Option, Outputs
from ldpaudit.extras.receipt.request import VerifyRequest


def verify(
    request: VerifyRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Draw a release's noise again from its key: is every released label what was drawn?"""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.receipt.verifying import verify

    raise typer.Exit(EXIT[carry_out(verify, request, Outputs(json), quiet=quiet).verdict])


def _stored() -> Any:
    from ldpaudit.extras.receipt.verifying import Verified

    return Verified


VERIFY: Final = Command(verify, stored=_stored)
