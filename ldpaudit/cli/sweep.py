"""``ldpaudit sweep``."""

from typing import Annotated

from ldpaudit.cli.options import Debug, Html, Json
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.options import Option


def sweep(
    request: SweepRequest,
    json: Json = None,
    html: Html = None,
    quiet: Annotated[bool, Option("Print the answer only.")] = False,
    _debug: Debug = False,
) -> None:
    """Before releasing: simulate, audit and learn over a grid, and find the least noise."""
    from ldpaudit.commands.outputs import Outputs
    from ldpaudit.commands.sweep.command import run_sweep

    if request.out is not None and json is None and html is None:
        json, html = request.out / "sweep.json", request.out / "sweep.html"
    run_sweep(request, Outputs.beside(request.data, "sweep", json, html), quiet=quiet)
