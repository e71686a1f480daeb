"""``ldpaudit demo``: two audits side by side, their verdicts, and what to open."""

import os
from collections import ChainMap
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from ldpaudit.api import unwritten_result
from ldpaudit.commands.outputs import ReportOutputs
from ldpaudit.commands.run.demonstration import write_demo
from ldpaudit.commands.run.request import RunRequest
from ldpaudit.commands.run.text import print_summary
from ldpaudit.errors import LdpAuditError
from ldpaudit.files.writing import write_all
from ldpaudit.interruption import last_words
from ldpaudit.reports import render
from ldpaudit.reports.json_report import as_json
from ldpaudit.result import AuditResult
from ldpaudit.tasks.processes import Processes
from ldpaudit.terminal import progress_on_terminal, say, words_only

_AUDITOR: Final = "ldpaudit.commands.run.demo:auditor"
_MADE_WITH: Final = (1, 3)
_Audited: TypeAlias = tuple[AuditResult, dict[Path, str]]
"""A result, and the contents of its files: a process that may be killed writes none."""


def run_demo(folder: Path, seed: int) -> int:
    """Write the two releases of the demo, audit both and print the verdicts; return the status.

    0 where the honest release passes and the dishonest one fails, as they should; else 1.

    Raises
    ------
    LdpAuditError
        If the files cannot be written, or an audit could not run.
    """
    files = write_demo(folder, seed)
    jobs = [(path, files.truth) for path in (files.honest, files.dishonest)]
    with last_words(lambda: "Interrupted; the releases are written, and no report on them."):
        results, texts = zip(*_audited(jobs), strict=True)
        write_all(dict(ChainMap(*texts)), last=True)
    as_meant = [result.verdict for result in results] == ["pass", "fail"]
    with words_only():
        for (release, truth), made_with, result in zip(jobs, _MADE_WITH, results, strict=True):
            say(f"\n{release.name}: declares ε = 1 and was made with ε = {made_with}")
            say(f"$ ldpaudit run {release} --truth {truth}")
            print_summary(result, quiet=False)
            ReportOutputs().or_beside(str(release), "audit").announce()
        page = ReportOutputs().or_beside(str(files.dishonest), "audit").html
        say(f"\n{_LAST[as_meant]}\nOpen {page} in a browser.")
    return 0 if as_meant else 1


_LAST: Final = {
    True: "The honest release passes, and the dishonest one is found out: that is what is wanted.",
    False: "These verdicts are not the usual ones: chance does that with some seeds (--seed).",
}


def _audited(jobs: list[tuple[Path, Path]]) -> list[_Audited]:
    """Audit releases, each in a process of its own: two take hardly longer than one."""
    threads = max(1, (os.cpu_count() or 1) // len(jobs))
    results: dict[int, _Audited] = {}
    with (
        progress_on_terminal(quiet=False) as progress,
        Processes(_AUDITOR, None, most=len(jobs), threads=threads) as processes,
    ):
        progress.step("auditing both releases, which takes about a quarter of a minute")
        for number, answer in processes.run([(*job, threads) for job in jobs]):
            if answer.error is not None or answer.reason:
                raise answer.error or LdpAuditError(answer.reason)
            results[number] = answer.content
    return [results[number] for number in range(len(jobs))]


def auditor(_setup: None) -> Callable[[tuple[Path, Path, int]], _Audited]:
    """Return what audits a release in a process of its own."""
    return _audit


def _audit(job: tuple[Path, Path, int]) -> _Audited:
    release, truth, threads = job
    request = RunRequest(
        release=(str(release),), truth=str(truth), threads=threads, command="ldpaudit demo"
    )
    with unwritten_result(str(release), request) as result:
        texts = {"json": as_json(result.model_dump()), "html": render(result, "html")}
    places = ReportOutputs().or_beside(str(release), "audit").asked
    return result, {place: texts[name] for name, place in places.items()}
