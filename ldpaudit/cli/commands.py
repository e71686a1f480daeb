"""The core's commands as functions: their options, what they call, and how they end."""

# What a command needs is imported when it is called: the command line itself must start at once.

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.interface import Command, Debug, Gate, Whom
from ldpaudit.commands.outputs import Outputs, ReportOutputs
from ldpaudit.commands.registered import work_within
from ldpaudit.commands.requests import DeclareRequest, RunRequest
from ldpaudit.errors import refuse
from ldpaudit.options import Argument, Option
from ldpaudit.terminal import say, stream


def run(
    request: RunRequest,
    gate: Gate,
    outputs: ReportOutputs,
    profile: Whom = "internal",
    predictions: Annotated[
        bool,
        Option("The file holds a model's class probabilities for its training table (--truth)."),
    ] = False,
    gaussian_delta: Annotated[
        float | None,
        Option("δ of --predictions, if noise is Gaussian."),
    ] = None,
    details: Annotated[
        bool, Option("In a job of GitHub or GitLab, whose log others may read, show the checks.")
    ] = False,
    quiet: Annotated[bool, Option("Print decision, verdict and first step only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit a released dataset and write the report."""
    from ldpaudit.api import policy_of
    from ldpaudit.commands.run.work import run_and_write

    if predictions:
        audit = work_within("run --predictions").function
        audited = audit(request, outputs, profile, gaussian_delta, quiet=quiet)
        raise typer.Exit(replace(gate, not_yet=None).status(None, audited))
    refuse(gaussian_delta is not None, "--gaussian-delta is about --predictions.")
    status = partial(gate.status, policy_of(request))
    request = replace(request, command=recorded_command(sys.argv, run))
    several = len(request.release) > 1
    outputs = outputs.or_beside(request.release[-1], "releases" if several else "audit")
    result = run_and_write(
        *(request, outputs), quiet=quiet, status=status, profile=profile, details=details
    )
    raise typer.Exit(status(result))


def demo(
    folder: Annotated[Path, Option("Where to put the releases and the reports.")] = Path(
        "ldpaudit-demo"
    ),
    seed: Annotated[int, Option("The seed of the releases.")] = 20260101,
    _debug: Debug = False,
) -> None:
    """Audit two releases of an embedded sample: an honest one and one that leaks too much."""
    from ldpaudit.commands.run.work import run_demo

    raise typer.Exit(run_demo(folder, seed))


def report(
    result: Annotated[
        Path | None, Argument("A stored result (.json); with --schema the name of a command.")
    ] = None,
    *,
    outputs: ReportOutputs,
    policy: Annotated[
        Path | None, Option("The policy it was judged by: checks are placed at their lines.")
    ] = None,
    schema: Annotated[
        bool, Option("Print the JSON Schema of results: of run, or of the command that is named.")
    ] = False,
    profile: Whom = "internal",
    _debug: Debug = False,
) -> None:
    """Render a stored result again: without options, as a page next to it."""
    from ldpaudit.cli.schemas import schema_of
    from ldpaudit.commands.run.work import render_again
    from ldpaudit.errors import InputError

    if schema:
        if outputs != ReportOutputs() or policy is not None or profile != "internal":
            raise InputError("--schema prints a schema alone, and goes with no other option.")
        stream(schema_of(str(result or "run")))
        return
    if result is None:
        raise InputError("Name a stored result (.json); ldpaudit run writes one.")
    render_again(result, outputs, policy, profile)


def declare(
    request: DeclareRequest,
    quiet: Annotated[bool, Option("Print nothing.")] = False,
    _debug: Debug = False,
) -> None:
    """Show what a released file declares, or write a declaration into it or next to it."""
    from ldpaudit.commands.declare.work import declare_file
    from ldpaudit.commands.shell import carry_out

    carry_out(declare_file, request, Outputs(), quiet=quiet)


def check(
    files: Annotated[tuple[str, ...], Argument("The policy file, or several.")],
    _debug: Debug = False,
) -> None:
    """Validate policies without any data."""
    from ldpaudit.judging.policy import load_policy

    for file in files:
        policy = load_policy(file)
        asked = [*policy.checks.asked(), *(["min-rows"] if policy.audit.min_rows else [])]
        weak = "" if policy.checks.can_fail() else " None of its checks can fail."
        say(f"{Path(file).name}: a valid policy. It asks for {', '.join(asked)}.{weak}")


def explain(
    name: Annotated[
        str | None, Argument("A check, a key, a preset or a rule (default: all of them).")
    ] = None,
    _debug: Debug = False,
) -> None:
    """Explain a check, a key or a rule of policies; without a name all of them."""
    from ldpaudit.judging.policy import explain as explained

    say(explained(name))


def show(
    preset: Annotated[str, Argument("ldpaudit:default, ldpaudit:strict or ldpaudit:research.")],
    _debug: Debug = False,
) -> None:
    """Print a preset, the policies that come with ldpaudit."""
    from ldpaudit.judging.policy import preset_text

    stream(preset_text(preset))


def init(
    file: Annotated[Path, Argument("The file to write.")] = Path("ldpaudit.toml"),
    _debug: Debug = False,
) -> None:
    """Write a starter policy, never over a file that exists."""
    from ldpaudit.errors import OutputError
    from ldpaudit.judging.policy import STARTER
    from ldpaudit.work.files import write_all

    if file.exists():
        raise OutputError(f"{file.name} exists already and is left as it is.")
    write_all({file: STARTER}, last=True)
    say(f"Wrote {file.name}.")


CORE: Final = (
    Command(run),
    Command(demo),
    Command(report),
    Command(declare),
    Command(check, group="policy"),
    Command(explain, group="policy"),
    Command(show, group="policy"),
    Command(init, group="policy"),
)
