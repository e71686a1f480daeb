"""The work of ``run``, ``demo`` and ``report``."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from ldpaudit.api import unwritten_result
from ldpaudit.commands.outputs import Outputs, read_result
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.commands.run.text import print_summary
from ldpaudit.commands.shell import carry_out
from ldpaudit.reports import render
from ldpaudit.result import AuditResult
from ldpaudit.running.progress import Progress
from ldpaudit.running.stopping import Stop
from ldpaudit.terminal import say


def run_and_write(request: RunRequest, outputs: Outputs, *, quiet: bool = False) -> AuditResult:
    """Audit, write the result and the report, and print the summary.

    Ctrl-C ends the audit early: what is finished is written. Finished parts (``--resume``) are kept
    until the result of the whole audit is written.
    """
    stop = Stop.after(request.timeout)
    with stop.on_signals(), ExitStack() as parts:

        def work(request: RunRequest, progress: Progress) -> AuditResult:
            options = replace(request, progress=progress, stop=stop)
            return parts.enter_context(unwritten_result(request.release, options))

        return carry_out(
            *(work, request, outputs, print_summary),
            stored=AuditResult.model_dump,
            html=partial(render, format_name="html"),
            quiet=quiet,
        )


def run_demo(folder: Path, seed: int) -> int:
    """Write the two releases of the demo, audit both and print the verdicts; return the status.

    0 where the honest release passes and the dishonest one fails, as they should; else 1.
    """
    from ldpaudit.commands.run.demonstration import write_demo

    files = write_demo(folder, seed)
    verdicts = []
    for path, story in (
        (files.honest, "declares ε = 1 and was made with ε = 1"),
        (files.dishonest, "declares ε = 1 but was made with ε = 3"),
    ):
        say(f"\n{path.name}: {story}")
        say(f"$ ldpaudit run {path} --truth {files.truth}")
        request = RunRequest(release=str(path), truth=str(files.truth), command="ldpaudit demo")
        result = run_and_write(request, Outputs().or_beside(str(path), "audit"))
        say(f"exit status {({'pass': 0, 'fail': 1}).get(result.verdict, 3)}")
        verdicts.append(result.verdict)
    return 0 if verdicts == ["pass", "fail"] else 1


def render_again(stored: Path, html: Path | None) -> str:
    """Render a stored result as a page; return one line that names it."""
    result = read_result(stored)
    target = html or stored.with_suffix(".html")
    Outputs(html=target).check([stored])
    result.to_html(target)
    return f"Wrote {target}."
