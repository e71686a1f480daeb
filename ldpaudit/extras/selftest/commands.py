"""``ldpaudit selftest``."""

# What a command needs is imported when it is called: the command line itself must start at once.

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ldpaudit.doors import EXIT, Command, Debug, Option, Outputs
from ldpaudit.extras.selftest.request import SelftestRequest


def selftest(
    request: SelftestRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit planted releases, honest and leaking: does this installation work as documented?"""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.selftest.work import selftest

    raise typer.Exit(EXIT[carry_out(selftest, request, Outputs(json), quiet=quiet).verdict])


def _stored() -> Any:
    from ldpaudit.extras.selftest.work import Selftest

    return Selftest


SELFTEST: Final = Command(selftest, stored=_stored)
