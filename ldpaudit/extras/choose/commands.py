"""``ldpaudit sweep``, ``advise``; ``mechanism describe``, ``channel``, ``compose``, ``design``."""

# What a command needs is imported when it is called: the command line itself must start at once.

from dataclasses import replace
from typing import Annotated, Any, Final

import typer

from ldpaudit.doors import EXIT, Command, Debug, Option, Outputs, refuse
from ldpaudit.extras.choose.advise.request import AdviseRequest
from ldpaudit.extras.choose.mechanism.outputs import DesignOutputs
from ldpaudit.extras.choose.mechanism.request import (
    ChannelRequest,
    ComposeRequest,
    DescribeRequest,
    DesignRequest,
)
from ldpaudit.extras.choose.sweep.request import SweepRequest


def sweep(
    request: SweepRequest,
    outputs: Outputs,
    quiet: Annotated[bool, Option("Print the answer only.")] = False,
    _debug: Debug = False,
) -> None:
    """Before releasing: simulate, audit and learn over a grid, and find the least noise."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.choose.sweep.run import sweep

    if request.out is not None and not outputs.given():
        outputs = Outputs(request.out / "sweep.json", request.out / "sweep.html")
    outputs = replace(outputs.or_beside(request.data, "sweep"), made=request.out)
    carry_out(sweep, request, outputs, quiet=quiet)


def advise(
    request: AdviseRequest,
    outputs: Outputs,
    quiet: Annotated[bool, Option("Print the answer and the first command only.")] = False,
    _debug: Debug = False,
) -> None:
    """Recommend a release that meets a policy, with the command to make it."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.choose.advise.work import advise

    result = carry_out(advise, request, outputs.or_beside(request.data, "advice"), quiet=quiet)
    raise typer.Exit(EXIT[result.verdict])


def describe(request: DescribeRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Say everything that is exactly known of a mechanism: ε, λ, δ(ε), Rényi curve, error."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.choose.mechanism.analysis import describe

    carry_out(describe, request, outputs)


def channel(request: ChannelRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Analyse a channel matrix exactly."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.choose.mechanism.analysis import describe_channel

    carry_out(describe_channel, request, outputs)


def compose(request: ComposeRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Say what several releases of the same labels reveal together."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.choose.mechanism.composing import compose_releases

    carry_out(compose_releases, request, outputs)


def design(
    request: DesignRequest,
    outputs: DesignOutputs,
    quiet: Annotated[bool, Option("Show no progress.")] = False,
    _debug: Debug = False,
) -> None:
    """Compare all mechanisms for a prior, a loss and ε, and say which to take."""
    from ldpaudit.doors import carry_out
    from ldpaudit.extras.choose.mechanism.designing import design

    refuse(
        outputs.channel_out is not None and not request.invariant,
        "--channel-out belongs to --invariant.",
    )

    carry_out(design, request, outputs, quiet=quiet)


def _sweep() -> Any:
    from ldpaudit.extras.choose.sweep.page import Sweep

    return Sweep


def _advice() -> Any:
    from ldpaudit.extras.choose.advise.page import Advice

    return Advice


def _analysis() -> Any:
    from ldpaudit.extras.choose.mechanism.result import Analysis

    return Analysis


def _design() -> Any:
    from ldpaudit.extras.choose.mechanism.designing import Design

    return Design


SWEEP: Final = Command(sweep, stored=_sweep)
ADVISE: Final = Command(advise, stored=_advice)
# ``channel`` and ``compose`` store what ``describe`` does.
DESCRIBE: Final = Command(describe, group="mechanism", stored=_analysis)
CHANNEL: Final = Command(channel, group="mechanism")
COMPOSE: Final = Command(compose, group="mechanism")
DESIGN: Final = Command(design, group="mechanism", stored=_design)
