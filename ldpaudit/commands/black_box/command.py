"""What the command does around the audit: progress, the file, the summary."""

from pathlib import Path

from ldpaudit.commands.black_box.request import Request
from ldpaudit.commands.black_box.result import BlackBoxAudit
from ldpaudit.commands.black_box.work import audit_black_box
from ldpaudit.commands.outputs import Outputs
from ldpaudit.terminal import progress_on_terminal, say


def run_and_write(request: Request, target: Path | None, *, quiet: bool) -> BlackBoxAudit:
    """Run the audit, write its JSON whole or not at all, and print the outcome.

    Raises
    ------
    OutputError
        If the file cannot be written; where that is plain beforehand, before anything is drawn.
    """
    outputs = Outputs(json=target)
    outputs.check()
    with progress_on_terminal(quiet) as progress:
        outcome = audit_black_box(request, progress)
    outputs.write(outcome.to_json)
    sentences = outcome.sentences()
    for sentence in sentences[:1] if quiet else sentences:
        say(sentence)
    if not quiet:
        outputs.announce()
    return outcome
