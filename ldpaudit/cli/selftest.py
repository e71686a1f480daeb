"""``ldpaudit selftest``."""

from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import EXIT, Debug
from ldpaudit.commands.outputs import Outputs
from ldpaudit.commands.selftest.request import SelftestRequest
from ldpaudit.options import Option


def selftest(
    request: SelftestRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit planted releases, honest and leaking: does this installation work as documented?"""
    from ldpaudit.commands.selftest.result import Selftest, print_summary
    from ldpaudit.commands.selftest.work import selftest
    from ldpaudit.commands.shell import carry_out

    outputs, stored = Outputs(json), Selftest.model_dump
    tested = carry_out(selftest, request, outputs, print_summary, stored=stored, quiet=quiet)
    raise typer.Exit(EXIT[tested.verdict])
