"""What ``run``, ``demo`` and ``report`` do: audit, write the reports, print the summary."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from ldpaudit.api import audit_with
from ldpaudit.commands.outputs import Outputs
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.commands.run.text import print_summary
from ldpaudit.errors import InputError
from ldpaudit.options import input_files
from ldpaudit.reports import render
from ldpaudit.result import AuditResult
from ldpaudit.terminal import progress_on_terminal, say


def audit_release(request: RunRequest, outputs: Outputs, *, quiet: bool = False) -> AuditResult:
    """Run the audit, write the reports and print the summary."""
    outputs.check(input_files(request))
    with progress_on_terminal(quiet) as progress:
        result = audit_with(request.release, replace(request, progress=progress))
        progress.step("report")
        outputs.write(partial(render, result, "json"), partial(render, result, "html"))
    print_summary(result, quiet=quiet)
    if not quiet:
        outputs.announce()
    return result


def run_demo(folder: Path, seed: int) -> int:
    """Write the two releases of the demo, audit both and say what came of it; return the status.

    0 where the honest release passes and the dishonest one fails, as they should; else 1.
    """
    from ldpaudit.demonstration import write_demo

    files = write_demo(folder, seed)
    verdicts = []
    for path, story in (
        (files.honest, "declares ε = 1 and was made with ε = 1"),
        (files.dishonest, "declares ε = 1 but was made with ε = 3"),
    ):
        say(f"\n{path.name}: {story}")
        say(f"$ ldpaudit run {path} --truth {files.truth}")
        request = RunRequest(release=str(path), truth=str(files.truth), command="ldpaudit demo")
        result = audit_release(request, Outputs.beside(str(path), "audit", None, None))
        say(f"exit status {({'pass': 0, 'fail': 1}).get(result.verdict, 3)}")
        verdicts.append(result.verdict)
    return 0 if verdicts == ["pass", "fail"] else 1


def render_again(stored: Path, html: Path | None) -> str:
    """Render a stored result; return what was done in one line."""
    try:
        text = stored.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"The result {stored.name!r} cannot be read.") from None
    result = AuditResult.from_json(text)
    target = html or stored.with_suffix(".html")
    Outputs(html=target).check([stored])
    result.to_html(target)
    return f"Wrote {target}."
