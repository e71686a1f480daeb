"""``ldpaudit mechanism audit``, and ``run --predictions``."""

# What a command needs is imported when it is called: the command line itself must start at once.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ldpaudit.doors import EXIT, Command, Debug, Outputs
from ldpaudit.extras.probe.black_box.request import BlackBoxRequest

if TYPE_CHECKING:
    from ldpaudit.commands.outputs import ReportOutputs
    from ldpaudit.commands.requests import RunRequest
    from ldpaudit.result import Profile
from ldpaudit.doors import Option


def audit(
    request: BlackBoxRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit any randomizer by its outputs: a certified lower bound of its ε."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.probe.black_box.work import audit_black_box

    raise typer.Exit(EXIT[carry_out(audit_black_box, request, Outputs(json), quiet=quiet).verdict])


def predictions(
    request: "RunRequest",
    outputs: "ReportOutputs",
    profile: "Profile",
    gaussian_delta: float | None,
    *,
    quiet: bool,
) -> Any:
    """Audit a model's predictions for its training table."""
    from ldpaudit.extras.probe.models.command import run_on_predictions

    return run_on_predictions(request, outputs, profile, gaussian_delta, quiet=quiet)


def _stored() -> Any:
    from ldpaudit.extras.probe.black_box.result import BlackBoxAudit

    return BlackBoxAudit


AUDIT: Final = Command(audit, group="mechanism", stored=_stored)
PREDICTIONS: Final = Command(predictions, within="run --predictions")
