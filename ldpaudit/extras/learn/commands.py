"""``ldpaudit learn``."""

# What a command needs is imported when it is called: the command line itself must start at once.

from pathlib import Path
from typing import Annotated, Any, Final

from ldpaudit.doors import Command, Debug, Option, Outputs
from ldpaudit.extras.learn.request import LearnRequest


def learn(
    request: LearnRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the score only.")] = False,
    _debug: Debug = False,
) -> None:
    """Train a learner that is corrected for the declared mechanism, and score it on test rows."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.learn.work import learn

    carry_out(learn, request, Outputs(json), quiet=quiet)


def _stored() -> Any:
    from ldpaudit.extras.learn.work import Learnt

    return Learnt


LEARN: Final = Command(learn, stored=_stored)
