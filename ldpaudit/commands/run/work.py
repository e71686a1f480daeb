"""What ``run``, ``demo`` and ``report`` do: audit, write the reports, print the summary."""

from dataclasses import replace
from pathlib import Path

from ldpaudit.api import audit_with
from ldpaudit.commands.run.request import (
    ReportPaths,
    RunRequest,
    check_outputs,
    report_paths,
)
from ldpaudit.commands.run.text import print_summary
from ldpaudit.errors import InputError, OutputError
from ldpaudit.reports import render, write_all
from ldpaudit.result import AuditResult
from ldpaudit.terminal import progress_on_terminal, say


def audit_release(request: RunRequest, paths: ReportPaths, *, quiet: bool = False) -> AuditResult:
    """Run the audit, write the reports and print the summary."""
    check_outputs(paths, request)
    with progress_on_terminal(quiet) as progress:
        result = audit_with(request.release, replace(request, progress=progress))
        progress.step("report")
        _write(result, paths)
    print_summary(result, paths, quiet=quiet)
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
        result = audit_release(request, report_paths(str(path), None, None))
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
    if target.resolve() == stored.resolve():
        raise OutputError(f"{target.name} is the stored result and is not overwritten.")
    result.to_html(target)
    return f"Wrote {target}."


def _write(result: AuditResult, paths: ReportPaths) -> None:
    texts: dict[Path, str] = {}
    if paths.html is not None:
        texts[paths.html] = render(result, "html")
    if paths.json is not None:
        texts[paths.json] = render(result, "json")
    write_all(texts)
