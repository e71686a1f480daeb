"""``ldpaudit sweep``."""

from dataclasses import replace
from typing import Annotated

from ldpaudit.cli.options import Debug
from ldpaudit.commands.outputs import Outputs
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.options import Option


def sweep(
    request: SweepRequest,
    outputs: Outputs,
    quiet: Annotated[bool, Option("Print the answer only.")] = False,
    _debug: Debug = False,
) -> None:
    """Before releasing: simulate, audit and learn over a grid, and find the least noise."""
    from ldpaudit.commands.shell import carry_out
    from ldpaudit.commands.sweep.page import sweep_page
    from ldpaudit.commands.sweep.result import Sweep, print_summary
    from ldpaudit.commands.sweep.run import sweep

    if request.out is not None and not outputs.given():
        outputs = Outputs(request.out / "sweep.json", request.out / "sweep.html")
    outputs = replace(outputs.or_beside(request.data, "sweep"), made=request.out)
    text, stored = print_summary, Sweep.stored
    carry_out(
        sweep,
        request,
        outputs,
        text,
        stored=stored,
        html=sweep_page,
        confidential=lambda _: True,
        quiet=quiet,
    )
