"""The work of ``run`` and ``report``, and what pipelines are told besides the result."""

import contextlib
import os
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ldpaudit.api import unwritten_result
from ldpaudit.commands.outputs import Outputs, ReportOutputs, read_result
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.commands.run.text import print_summary
from ldpaudit.commands.shell import carry_out, say_public
from ldpaudit.errors import quoted, refuse
from ldpaudit.judging.policy import check_lines, load_policy
from ldpaudit.judging.policy.explaining import CHECKS
from ldpaudit.options import named_columns
from ldpaudit.reports import render
from ldpaudit.reports.interface import Place, Surroundings
from ldpaudit.reports.text.wording import PUBLISH, every_check
from ldpaudit.result import AuditResult, Profile
from ldpaudit.result.harmless import one_line
from ldpaudit.result.numbers import number
from ldpaudit.result.public import public
from ldpaudit.terminal import GITHUB, others_read, say, stream, words_only
from ldpaudit.work.progress import Progress, Stop

if TYPE_CHECKING:
    from ldpaudit.models_as_releases.result import PredictionsAudit

PIPELINE: Final = ("sarif", "junit", "markdown")
"""Formats that other programs read, besides the result itself."""


def run_and_write(
    request: RunRequest,
    outputs: Outputs,
    *,
    quiet: bool = False,
    status: Callable[[AuditResult], int] | None = None,
    profile: Profile = "internal",
    details: bool = False,
) -> AuditResult:
    """Audit, write the result and the reports, and print the summary.

    ``status`` gives the exit status of a result, which some formats repeat; ``profile`` is whom
    the reports are for, ``details`` whether the log of a service may show what was found.

    Ctrl-C ends the audit early: what is finished is written.
    """
    discreet = profile == "public" or (others_read() and not details)
    stop = Stop.after(request.timeout)
    with stop.on_signals(), ExitStack() as parts:

        def work(request: RunRequest, progress: Progress) -> AuditResult:
            options = replace(request, progress=progress, stop=stop)
            released = request.release if len(request.release) > 1 else request.release[0]
            return parts.enter_context(unwritten_result(released, options))

        def around(result: AuditResult) -> Surroundings:
            ended = None if status is None else status(result)
            return Surroundings(_places(result, request.policy), CHECKS, ended, profile)

        def rendered(name: str, result: AuditResult) -> str:
            return render(result, name, around(result))

        def tell(result: AuditResult, /, *, quiet: bool) -> None:
            if profile == "public":
                say_public(public(result), quiet=quiet)
            elif not discreet:
                print_summary(result, quiet=quiet, typed=_typed(request))
            if others_read():
                _tell_service(result, around(result), details=details and profile == "internal")

        return carry_out(
            *(work, request, outputs, tell),
            stored=lambda result: (public(result) if profile == "public" else result).model_dump(),
            html=partial(rendered, "html"),
            more={name: partial(rendered, name) for name in PIPELINE},
            confidential=lambda result: profile == "internal" and result.confidential,
            quiet=quiet,
            discreet=discreet,
            minds_log=True,
        )


def _typed(request: RunRequest) -> dict[str, str]:
    """Return what was typed for the placeholders in the commands of a result."""
    columns = [f"--label {shlex.quote(one.label)}" for one in named_columns(request)]
    named = {"TRUTH": request.truth, "POLICY": request.policy}
    given = {word: shlex.quote(str(value)) for word, value in named.items() if value is not None}
    return {"RELEASE": " ".join([*map(shlex.quote, request.release), *columns]), **given}


def _places(result: AuditResult, policy: object) -> dict[str, Place]:
    """Return where the policy asks for each check; nothing where it is no file, or has changed."""
    if not isinstance(policy, str | Path):
        return {}
    path = Path(policy)
    try:
        if not path.is_file() or load_policy(path).sha256 != result.run.policy_sha256:
            return {}
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):  # It has changed since; that takes nothing from the result.
        return {}
    shown = path.name  # From outside of the working directory.
    with contextlib.suppress(ValueError):
        shown = path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    lines = check_lines(text, list(dict.fromkeys(check.id for check in every_check(result))))
    return {check: Place(shown, line) for check, line in lines.items()}


def _tell_service(result: AuditResult, around: Surroundings, *, details: bool) -> None:
    """Tell the service that runs the command the decision and the exit status.

    On GitHub as an annotation and in the step's summary; with ``details`` both hold the checks
    and what was measured.
    """
    status = around.exit_status(result)
    ended = f"Publish: {PUBLISH[result.decision]}. Exit status {status}."
    if os.environ.get(GITHUB) != "true":
        if not details:
            say(ended)
        return
    from ldpaudit.reports.annotations import annotations, of_decision

    for line in annotations(result, around) if details else [of_decision(result, ended)]:
        say(line)
    shown = details or around.profile == "public"
    text = render(result, "markdown", around) if shown else f"**{ended}**\n"
    summary = Path(os.environ.get("GITHUB_STEP_SUMMARY", ""))
    with contextlib.suppress(OSError, ValueError):
        if summary.is_file():
            with summary.open("a", encoding="utf-8") as page:
                page.write("\n" + text)


def run_on_predictions(
    request: RunRequest, outputs: ReportOutputs, profile: Profile, *, quiet: bool
) -> "PredictionsAudit":
    """Audit a model's predictions, write result and page, and print the answer."""
    refuse(
        profile == "public" or outputs.asked.keys() - {"json", "html"},
        "Predictions have a result (--json) and a page (--html) for those who may see the true "
        "labels, and no other report.",
    )
    refuse(len(request.release) > 1, "Predictions are audited one file at a time.")
    from ldpaudit.models_as_releases.predictions import of_predictions
    from ldpaudit.models_as_releases.result import PredictionsAudit

    def work(request: RunRequest, progress: Progress) -> PredictionsAudit:
        return of_predictions(request.release[0], replace(request, progress=progress))

    def tell(found: PredictionsAudit, /, *, quiet: bool) -> None:
        say(one_line(found.sentence))
        for estimate in () if quiet else found.estimates:
            say(f"  {estimate.kind:<12} {one_line(f'{estimate.title}: {number(estimate.value)}')}")

    return carry_out(
        *(work, request, outputs.or_beside(request.release[0], "audit"), tell),
        stored=lambda found: {**found.model_dump(), "sentence": found.sentence},
        html=PredictionsAudit.to_html,
        confidential=lambda _: True,
        quiet=quiet,
    )


def render_again(
    stored: Path,
    outputs: ReportOutputs,
    policy: Path | None = None,
    profile: Profile = "internal",
) -> None:
    """Render a stored result: as asked for, else as a page beside it.

    InputError where it is no stored result, or was judged by another policy.
    """
    result = read_result(stored)
    if not outputs.asked:
        outputs = replace(outputs, html=stored.with_suffix(".html"))
    outputs.check([stored, policy])
    if policy is not None:
        load_policy(policy)
    around = Surroundings(_places(result, policy), CHECKS, None, profile)
    name = "" if policy is None else quoted(policy.name)
    refuse(name and not around.places, f"The result was not judged by the policy {name}.")
    streamed = outputs.write(
        {name: partial(render, result, name, around) for name in outputs.asked},
        confidential=profile == "internal" and result.confidential,
    )
    with words_only(), outputs.for_people():
        for path in outputs.given():
            say(f"Wrote {one_line(str(path))}.")
    if streamed:
        with words_only():
            stream(streamed)
