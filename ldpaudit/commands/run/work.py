"""The work of ``run`` and ``report``."""

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ldpaudit.api import unwritten_result
from ldpaudit.commands.outputs import Outputs, ReportOutputs, read_result
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.commands.run.surroundings import surroundings_of, tell_github
from ldpaudit.commands.run.text import print_summary
from ldpaudit.commands.shell import carry_out
from ldpaudit.errors import InputError, quoted
from ldpaudit.judging.policy import load_policy
from ldpaudit.options import named_columns
from ldpaudit.reports import render
from ldpaudit.reports.interface import Surroundings
from ldpaudit.reports.text.harmless import one_line
from ldpaudit.result import AuditResult, Profile
from ldpaudit.running.progress import Progress
from ldpaudit.running.stopping import Stop
from ldpaudit.terminal import say, stream, words_only

PIPELINE: Final = ("sarif", "junit", "markdown")
"""Formats that other programs read, besides the result itself."""


def run_and_write(
    request: RunRequest,
    outputs: Outputs,
    *,
    quiet: bool = False,
    status: Callable[[AuditResult], int] | None = None,
    profile: Profile = "internal",
) -> AuditResult:
    """Audit, write the result and the reports, and print the summary.

    ``status`` gives the exit status of a result, which some formats repeat; ``profile`` is whom
    the page is for.

    Ctrl-C ends the audit early: what is finished is written. Finished parts (``--resume``) are kept
    until the result of the whole audit is written.
    """
    _check_profile(profile, outputs)
    stop = Stop.after(request.timeout)
    with stop.on_signals(), ExitStack() as parts:

        def work(request: RunRequest, progress: Progress) -> AuditResult:
            options = replace(request, progress=progress, stop=stop)
            released = request.release if len(request.release) > 1 else request.release[0]
            return parts.enter_context(unwritten_result(released, options))

        def around(result: AuditResult) -> Surroundings:
            ended = None if status is None else status(result)
            return surroundings_of(result, request.policy, ended)

        def tell(result: AuditResult, /, *, quiet: bool) -> None:
            print_summary(result, quiet=quiet, typed=_typed(request))
            tell_github(result, around(result))

        return carry_out(
            *(work, request, outputs, tell),
            stored=AuditResult.model_dump,
            html=partial(render, format_name="html", surroundings=Surroundings(profile=profile)),
            more={name: partial(_rendered, name, around) for name in PIPELINE},
            quiet=quiet,
        )


def _typed(request: RunRequest) -> dict[str, str]:
    """Return what was typed for the placeholders in the commands of a result."""
    columns = [f"--label {shlex.quote(one.label)}" for one in named_columns(request)]
    release = " ".join([*map(shlex.quote, request.release), *columns])
    named = {"TRUTH": request.truth, "POLICY": request.policy}
    given = {word: shlex.quote(str(value)) for word, value in named.items() if value is not None}
    return {"RELEASE": release, **given}


def _check_profile(profile: Profile, outputs: Outputs) -> None:
    """Refuse formats that hold measured numbers beside a page for everybody (InputError)."""
    told = [f"--{name}" for name in PIPELINE if name in outputs.asked]
    if profile == "public" and told:
        raise InputError(
            f"--profile public is of the page alone; {' and '.join(told)} would hold what was "
            "measured. Write them without it."
        )


def _rendered(name: str, around: Callable[[AuditResult], Surroundings], result: AuditResult) -> str:
    return render(result, name, around(result))


def render_again(
    stored: Path,
    outputs: ReportOutputs,
    policy: Path | None = None,
    profile: Profile = "internal",
) -> None:
    """Render a stored result: as asked for, else as a page beside it.

    Raises
    ------
    InputError
        If it is no stored result, or was judged by another policy.
    """
    result = read_result(stored)
    if not outputs.asked:
        outputs = replace(outputs, html=stored.with_suffix(".html"))
    _check_profile(profile, outputs)
    outputs.check([stored, policy])
    if policy is not None:
        load_policy(policy)
    around = replace(surroundings_of(result, policy), profile=profile)
    if policy is not None and not around.places:
        raise InputError(f"The result was not judged by the policy {quoted(policy.name)}.")
    formats = outputs.asked
    streamed = outputs.write({name: partial(render, result, name, around) for name in formats})
    with words_only(), outputs.for_people():
        for path in outputs.given():
            say(f"Wrote {one_line(str(path))}.")
    if streamed:
        with words_only():
            stream(streamed)
