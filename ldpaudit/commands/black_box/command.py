"""What the command does around the audit: progress, the file, the summary."""

import os
from pathlib import Path

from ldpaudit.commands.black_box.auditing import audit_black_box
from ldpaudit.commands.black_box.outcome import BlackBoxAudit
from ldpaudit.commands.black_box.request import Request
from ldpaudit.errors import OutputError
from ldpaudit.terminal import progress_on_terminal, say


def run_and_write(request: Request, target: Path | None, *, quiet: bool) -> BlackBoxAudit:
    """Run the audit, write its JSON whole or not at all, and print the outcome.

    Raises
    ------
    OutputError
        If the file cannot be written; where that is plain beforehand, before anything is drawn.
    """
    _check_target(target)
    with progress_on_terminal(quiet) as progress:
        outcome = audit_black_box(request, progress)
    if target is not None:
        from ldpaudit.reports import write_all

        write_all({target: outcome.to_json()})
    sentences = outcome.sentences()
    for sentence in sentences[:1] if quiet else sentences:
        say(sentence)
    if target is not None and not quiet:
        say(f"  {'written':<12} {target}")
    return outcome


def _check_target(target: Path | None) -> None:
    if target is None:
        return
    if target.is_dir():
        raise OutputError(f"{target.name} is a folder; the result needs a file name.")
    if not target.parent.is_dir():
        raise OutputError(f"The folder for {target.name} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"The folder for {target.name} cannot be written to.")
