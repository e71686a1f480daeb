"""``ldpaudit learn``."""

from pathlib import Path
from typing import Annotated

from ldpaudit.cli.options import Debug
from ldpaudit.commands.learn.request import LearnRequest
from ldpaudit.commands.outputs import Outputs
from ldpaudit.options import Option


def learn(
    request: LearnRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the score only.")] = False,
    _debug: Debug = False,
) -> None:
    """Train a learner that is corrected for the declared mechanism, and score it on test rows."""
    from ldpaudit.commands.learn.result import Learnt, print_summary
    from ldpaudit.commands.learn.work import learn
    from ldpaudit.commands.shell import carry_out

    outputs = Outputs(json)
    text, stored = print_summary, Learnt.model_dump
    carry_out(
        *(learn, request, outputs, text), stored=stored, confidential=lambda _: True, quiet=quiet
    )
