"""``ldpaudit advise``."""

from typing import Annotated

import typer

from ldpaudit.cli.options import EXIT, Debug
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.outputs import Outputs
from ldpaudit.options import Option


def advise(
    request: AdviseRequest,
    outputs: Outputs,
    quiet: Annotated[bool, Option("Print the answer and the first command only.")] = False,
    _debug: Debug = False,
) -> None:
    """Recommend a release that meets a policy, with the command to make it."""
    from ldpaudit.commands.advise.page import advice_page
    from ldpaudit.commands.advise.result import Advice, print_advice
    from ldpaudit.commands.advise.work import advise
    from ldpaudit.commands.shell import carry_out

    outputs = outputs.or_beside(request.data, "advice")
    stored, text, page = Advice.model_dump, print_advice, advice_page
    result = carry_out(
        advise,
        request,
        outputs,
        text,
        stored=stored,
        html=page,
        confidential=lambda _: True,
        quiet=quiet,
    )
    raise typer.Exit(EXIT[result.verdict])
