"""The commands as functions: their options, what they call, and how they end."""

# What a command needs is imported when it is called: the command line itself must start at once.

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from ldpaudit.cli.parameters import parameters_of, recorded_command
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.outputs import DesignOutputs, Outputs, ReportOutputs
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.requests import (
    BlackBoxRequest,
    ChannelRequest,
    CompareRequest,
    ComposeRequest,
    DeclareRequest,
    DescribeRequest,
    DesignRequest,
    LearnRequest,
    RunRequest,
    SelftestRequest,
)
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.verify.request import VerifyRequest
from ldpaudit.errors import refuse
from ldpaudit.options import Argument, Option
from ldpaudit.terminal import say, stream

if TYPE_CHECKING:
    from ldpaudit.judging.policy import Policy

# The exit status of each verdict, the worst first.
EXIT = {"fail": 1, "inconclusive": 3, "pass": 0}
# That of a pass whose decision is *not yet*, where that is to fail: nothing was violated.
NOT_YET: Final = EXIT["inconclusive"]

Whom = Annotated[
    Literal["internal", "public"],
    Option("Whom reports are for; public: the decision, and nothing else that true labels reveal."),
]
Debug = Annotated[bool, Option("Show tracebacks.")]


@dataclass(frozen=True)
class Gate:
    """How verdicts become exit statuses."""

    inconclusive: Annotated[
        Literal["fail", "pass"] | None,
        Option("Exit as a failure or as a pass when inconclusive."),
    ] = None
    not_yet: Annotated[
        Literal["fail", "pass"] | None,
        Option("Exit 3 or 0 where the decision is 'not yet'; default: as the policy says, or 0."),
    ] = None
    exit_zero: Annotated[bool, Option("Exit 0 with any verdict.")] = False

    def status(self, policy: "Policy | None", *results: Any) -> int:
        """Return the exit status of the worst of the results, judged by a policy."""
        verdicts = {result.verdict for result in results}
        verdict = next(verdict for verdict in EXIT if verdict in verdicts)
        if verdict == "inconclusive" and self.inconclusive is not None:
            verdict = self.inconclusive
        asked = self.not_yet or ("pass" if policy is None else policy.decision.not_yet)
        if self.exit_zero:
            return 0
        if EXIT[verdict] == 0 and asked == "fail" and any(r.decision == "not yet" for r in results):
            return NOT_YET
        return EXIT[verdict]


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
    from ldpaudit.commands.run.work import run_and_write, run_on_predictions

    if predictions:
        audited = run_on_predictions(request, outputs, profile, gaussian_delta, quiet=quiet)
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


def open(
    files: Annotated[
        tuple[str, ...],
        Argument(
            "What the page opens with: released files, or a stored result (.json).", "[FILE]…"
        ),
    ] = (),
    no_browser: Annotated[bool, Option("Print the page's address, and open no browser.")] = False,
    port: Annotated[int, Option("The port on this computer (default: one that is free).")] = 0,
    memory: Annotated[
        str | None, Option("The most memory of audits and uploads, such as 4GiB (default: half).")
    ] = None,
    container: Annotated[
        bool,
        Option("In a container: listen to its network; publish the port to 127.0.0.1 alone."),
    ] = False,
    _debug: Debug = False,
) -> None:
    """Audit releases and choose the noise on a page in the browser of this computer."""
    from importlib.util import find_spec

    from ldpaudit.errors import MissingDependencyError

    if not all(map(find_spec, ("starlette", "uvicorn", "python_multipart"))):
        raise MissingDependencyError(
            "ldpaudit open needs starlette, uvicorn and python-multipart, which are installed with "
            "ldpaudit; install it again."
        )
    from ldpaudit.web.server import serve

    serve(
        {one.__name__: [*parameters_of(one)] for one in (run, report, advise, sweep, compare)},
        files,
        port=port,
        memory=memory,
        browser=not no_browser,
        container=container,
    )


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
    from ldpaudit.commands.run.work import render_again
    from ldpaudit.commands.schemas import schema_of
    from ldpaudit.errors import InputError

    if schema:
        stream(schema_of(str(result or "run")))
        return
    if result is None:
        raise InputError("Name a stored result (.json); ldpaudit run writes one.")
    render_again(result, outputs, policy, profile)


def privatize(
    request: PrivatizeRequest,
    quiet: Annotated[bool, Option("Print nothing.")] = False,
    _debug: Debug = False,
) -> None:
    """Apply a mechanism to a table and write the release with its declaration inside."""
    from ldpaudit.commands.privatize.work import privatize
    from ldpaudit.commands.shell import carry_out

    carry_out(privatize, request, Outputs(), quiet=quiet)


def verify(
    request: VerifyRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Draw a release's noise again from its key: is every released label what was drawn?"""
    from ldpaudit.commands.shell import carry_out
    from ldpaudit.commands.verify.work import verify

    raise typer.Exit(EXIT[carry_out(verify, request, Outputs(json), quiet=quiet).verdict])


def declare(
    request: DeclareRequest,
    quiet: Annotated[bool, Option("Print nothing.")] = False,
    _debug: Debug = False,
) -> None:
    """Show what a released file declares, or write a declaration into it or next to it."""
    from ldpaudit.commands.declare.work import declare_file
    from ldpaudit.commands.shell import carry_out

    carry_out(declare_file, request, Outputs(), quiet=quiet)


def sweep(
    request: SweepRequest,
    outputs: Outputs,
    quiet: Annotated[bool, Option("Print the answer only.")] = False,
    _debug: Debug = False,
) -> None:
    """Before releasing: simulate, audit and learn over a grid, and find the least noise."""
    from ldpaudit.commands.shell import carry_out
    from ldpaudit.commands.sweep.run import sweep

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
    from ldpaudit.commands.advise.work import advise
    from ldpaudit.commands.shell import carry_out

    result = carry_out(advise, request, outputs.or_beside(request.data, "advice"), quiet=quiet)
    raise typer.Exit(EXIT[result.verdict])


def compare(
    request: CompareRequest,
    gate: Gate,
    outputs: Outputs,
    profile: Whom = "internal",
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Compare releases of the same data: leakage, attacks, and what can still be learnt."""
    from ldpaudit.api import policy_of
    from ldpaudit.commands.compare.sentences import Compared
    from ldpaudit.commands.compare.work import compare as work
    from ldpaudit.commands.shell import carry_out

    request = replace(request, command=recorded_command(sys.argv, compare))
    request.check()
    outputs = outputs.or_beside(request.inputs[0], "comparison")
    found = carry_out(
        lambda request, progress: Compared(work(request, progress), profile),
        *(request, outputs),
        quiet=quiet,
        discreet=profile == "public",
    )
    if request.policy is not None:
        raise typer.Exit(gate.status(policy_of(request), *found.comparison.releases))


def learn(
    request: LearnRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the score only.")] = False,
    _debug: Debug = False,
) -> None:
    """Train a learner that is corrected for the declared mechanism, and score it on test rows."""
    from ldpaudit.commands.learn.work import learn
    from ldpaudit.commands.shell import carry_out

    carry_out(learn, request, Outputs(json), quiet=quiet)


def selftest(
    request: SelftestRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit planted releases, honest and leaking: does this installation work as documented?"""
    from ldpaudit.commands.selftest.work import selftest
    from ldpaudit.commands.shell import carry_out

    raise typer.Exit(EXIT[carry_out(selftest, request, Outputs(json), quiet=quiet).verdict])


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


def describe(request: DescribeRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Say everything that is exactly known of a mechanism: ε, λ, δ(ε), Rényi curve, error."""
    from ldpaudit.commands.mechanism.analysis import describe
    from ldpaudit.commands.shell import carry_out

    carry_out(describe, request, outputs)


def channel(request: ChannelRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Analyse a channel matrix exactly."""
    from ldpaudit.commands.mechanism.analysis import describe_channel
    from ldpaudit.commands.shell import carry_out

    carry_out(describe_channel, request, outputs)


def compose(request: ComposeRequest, outputs: Outputs, _debug: Debug = False) -> None:
    """Say what several releases of the same labels reveal together."""
    from ldpaudit.commands.mechanism.composing import compose_releases
    from ldpaudit.commands.shell import carry_out

    carry_out(compose_releases, request, outputs)


def design(
    request: DesignRequest,
    outputs: DesignOutputs,
    quiet: Annotated[bool, Option("Show no progress.")] = False,
    _debug: Debug = False,
) -> None:
    """Compare all mechanisms for a prior, a loss and ε, and say which to take."""
    from ldpaudit.commands.mechanism.designing import design
    from ldpaudit.commands.shell import carry_out

    refuse(
        outputs.channel_out is not None and not request.invariant,
        "--channel-out belongs to --invariant.",
    )

    carry_out(design, request, outputs, quiet=quiet)


def audit(
    request: BlackBoxRequest,
    json: Annotated[Path | None, Option("Where to write the result.")] = None,
    quiet: Annotated[bool, Option("Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit any randomizer by its outputs: a certified lower bound of its ε."""
    from ldpaudit.commands.black_box.work import audit_black_box
    from ldpaudit.commands.shell import carry_out

    raise typer.Exit(EXIT[carry_out(audit_black_box, request, Outputs(json), quiet=quiet).verdict])
