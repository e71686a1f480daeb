"""What pipelines want to know of an audit besides its result, and what their log shows."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from ldpaudit.judging.policy import check_lines, load_policy
from ldpaudit.judging.policy.explaining import CHECKS
from ldpaudit.reports import render
from ldpaudit.reports.annotations import annotations, of_decision
from ldpaudit.reports.interface import Place, Surroundings
from ldpaudit.reports.text.wording import PUBLISH, every_check
from ldpaudit.result import AuditResult
from ldpaudit.terminal import GITHUB, others_read, say


def surroundings_of(result: AuditResult, policy: object, status: int | None = None) -> Surroundings:
    """Return the surroundings of a result.

    Parameters
    ----------
    result : AuditResult
    policy : path or anything else
        The file by which it was judged. Without one, or where it has changed since, checks have no
        line of their own.
    status : int, optional
        The exit status of the command.
    """
    path = Path(policy) if isinstance(policy, str | Path) else None
    places = {} if path is None else _places(result, path)
    return Surroundings(places, CHECKS, status)


def _places(result: AuditResult, path: Path) -> dict[str, Place]:
    """Return where the policy asks for each check; nothing where it is not that policy."""
    try:
        if not path.is_file() or load_policy(path).sha256 != result.run.policy_sha256:
            return {}
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):  # It has changed since; that takes nothing from the result.
        return {}
    lines = check_lines(text, list(dict.fromkeys(check.id for check in every_check(result))))
    return {check: Place(_from_here(path), line) for check, line in lines.items()}


def _from_here(path: Path) -> str:
    """Return a file's name as seen from the working directory; its own name where it is outside."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return path.name


def tell_service(
    result: AuditResult,
    surroundings: Surroundings,
    environment: Mapping[str, str] = os.environ,
    *,
    details: bool = False,
) -> None:
    """Tell the service that runs the command the decision and the exit status.

    On GitHub as an annotation and in the step's summary; with ``details`` both hold the checks
    and what was measured.
    """
    if not others_read(environment):
        return
    shared = surroundings.profile == "public"
    status = surroundings.exit_status(result)
    ended = f"Publish: {PUBLISH[result.decision]}. Exit status {status}."
    if environment.get(GITHUB) != "true":
        if not details:
            say(ended)
        return
    for line in annotations(result, surroundings) if details else [of_decision(result, ended)]:
        say(line)
    text = render(result, "markdown", surroundings) if shared or details else f"**{ended}**\n"
    summary = Path(environment.get("GITHUB_STEP_SUMMARY", ""))
    with contextlib.suppress(OSError, ValueError):
        if summary.is_file():
            with summary.open("a", encoding="utf-8") as page:
                page.write("\n" + text)
