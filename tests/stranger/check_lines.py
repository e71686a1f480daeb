"""The checks of a result, one a line: ``--format check-lines=FILE``."""

from ldpaudit.doors import Format


def render(result, surroundings):
    lines = [f"{check.id}\t{check.verdict}" for check in result.checks]
    return "\n".join([*lines, f"exit status\t{surroundings.exit_status(result)}", ""])


CHECK_LINES = Format(render)
