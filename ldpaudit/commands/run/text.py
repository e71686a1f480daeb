"""What ``ldpaudit run`` prints."""

from ldpaudit.result import AuditResult
from ldpaudit.terminal import say

SPECIAL = frozenset({"numeric-inference", "aggregates", "synthetic"})
"""Audits of special releases: only the result says that they do not apply to others."""


def print_summary(result: AuditResult, *, quiet: bool) -> None:
    """Print the verdict and the checks."""
    say(result.sentence)
    if quiet:
        return
    for check in result.checks:
        waived = " (waived)" if check.waived else ""
        say(f"  {check.verdict:<12} {check.id}: {check.reason}{waived}")
    for record in result.audits:
        if record.status != "ran" and record.id not in SPECIAL:
            say(f"  {record.status:<12} {record.id}: {record.reason}")
    for note in result.notes:
        if note.level == "warning":
            say(f"  {'warning':<12} {note.text}")
